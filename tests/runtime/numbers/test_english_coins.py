"""Coins, bills and pairs in English texts have the value or number that the question asks for."""

import pytest

from hf_mwp.runtime.problems import find_numbers


@pytest.mark.parametrize(
    ("text", "literals"),
    [
        ("I have 7 nickels and 12 pennies. How many cents is it?", "35 12"),
        ("He pays with two $20 bills. How much change does he get for a $30 shirt?", "40 30"),
        ("He has 3 ten-dollar notes. How many dollars is that?", "30"),
        ("The hat is half price, $8 before.", "50% 8"),
        ("He had 6 pairs of gloves and lost 1 glove. How many gloves?", "12 1"),
        # Coins, bills and pairs themselves, and other meanings of the words.
        ("She had 7 dimes and got 4 dimes. How many coins?", "7 4"),
        ("He has ten $10 bills and 4 fewer $5 bills. How much money?", "10 10 4 5"),
        ("He got change for a $20 bill. How much money is 3 quarters of it?", "20 (3/4)"),
        ("6 pairs of shoes cost $90. How much is a pair?", "6 90"),
    ],
)
def test_values(text, literals):
    numbers = find_numbers(text, "en", number_reading="people")
    assert [mention.literal for mention in numbers] == literals.split()
