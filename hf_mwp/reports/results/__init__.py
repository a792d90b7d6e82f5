"""What came out of a table, and how it is shown."""
