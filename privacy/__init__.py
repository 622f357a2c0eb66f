"""What is personal? Finding it, masking it, sealing it, hashing it. Pure: no I/O here."""
