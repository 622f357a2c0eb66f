"""What work is there? The letters, the bell that announces them, and one file per job."""
