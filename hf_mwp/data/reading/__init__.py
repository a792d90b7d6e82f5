"""Reading of data files into rows of one schema."""
