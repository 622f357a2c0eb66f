"""Steps of the key store."""
