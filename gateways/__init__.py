"""Whom does it ask? The model server, the key store, the embedded servers."""
