"""How did the schema get here? Forward-only steps, run under an advisory lock."""
