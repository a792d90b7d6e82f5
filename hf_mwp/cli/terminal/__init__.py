"""What the commands print and read."""
