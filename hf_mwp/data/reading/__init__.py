"""From data files to the rows of one schema."""
