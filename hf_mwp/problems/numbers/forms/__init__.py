"""Forms of numbers beyond plain digits and number words: 八五折, 3千克半, "two thirds"."""
