"""Students that start from their teacher's weights."""
