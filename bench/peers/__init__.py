"""How do others do the same? What runs here is run by an interpreter that has the peer, not by ours."""
