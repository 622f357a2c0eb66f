"""How does `extractive` make a terse note of what somebody said?"""
