"""How does it think? Turns into observations, a log into a smaller log, a log into a block. Pure: no I/O here."""
