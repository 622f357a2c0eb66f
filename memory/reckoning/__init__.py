"""How does `dates` reckon the days that a text speaks about?"""
