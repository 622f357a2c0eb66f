"""How is memory read? One person's log opened, searched, put into a block, and accounted for."""
