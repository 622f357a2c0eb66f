"""What does an operator type? One file per command group of `afterturn`."""
