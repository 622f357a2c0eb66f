"""How fast, how cheap, how good? Each module prints one JSON line; every figure is a ratio of one run."""
