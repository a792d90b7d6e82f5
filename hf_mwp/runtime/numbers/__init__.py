"""Numbers in texts: their forms, values and positions."""
