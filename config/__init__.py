"""What can change without a commit? Settings, read once at the door, and logging."""
