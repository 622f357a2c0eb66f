"""Where and when does work run? Workers that claim it, a reconciler that finds what is due."""
