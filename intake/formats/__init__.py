"""What do chats look like in the files that other programs write?"""
