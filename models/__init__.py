"""What is remembered? One file per noun: its table on top, every query about it below."""
