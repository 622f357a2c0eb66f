"""How does a message become a turn? Shapes of chats, masking, counting, sealing, one commit."""
