"""How do things come in? Thin HTTP: one file per resource, one table of errors."""
