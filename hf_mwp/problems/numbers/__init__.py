"""Search for numbers in texts: digits, fractions, and English and Chinese number words."""
