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
        ("I have 2 quarters, a dime and a nickel. How much money do I have?", "0.5 0.1 0.05"),
        ("She paid with two twenties and got 3 dollars back. How much did she spend?", "40 3"),
        ("I have three tens and four fives. How much money is it?", "30 20"),
        ("I have two fivers and a tenner. How much money is it?", "10 10"),
        ("A 60p pen and a 45p card. How much in pounds?", "0.6 0.45"),
        ("Petrol is 145.9p a litre. What do 10 litres cost in pounds?", "1.459 10"),
        ("Gum is $5.40 here and $4.00 there. How many cents cheaper is it?", "540 400"),
        ("How many 15-cent stamps can I buy with $3?", "0.15 3"),
        ("How many 25c coins make $4?", "0.25 4"),
        ("Calls are 5c a minute. How many dollars for 20 minutes?", "0.05 20"),
        # Coins, bills and pairs themselves, and other meanings of the words.
        ("She had 7 dimes and got 4 dimes. How many coins?", "7 4"),
        ("He has ten $10 bills and 4 fewer $5 bills. How much money?", "10 10 4 5"),
        ("He got change for a $20 bill. How much money is 3 quarters of it?", "20 (3/4)"),
        ("I cut the apple in four quarters and ate 3. How much is left?", "4 3"),
        ("She scored 6 points in each of two quarters. How much did she score?", "6 2"),
        ("How much is 3 tens and 4 ones?", "3 4"),
        ("60p weigh 12 g. How many pounds do 9 weigh?", "60 12 9"),
        ("How many cents is $3?", "3"),
        ("6 pairs of shoes cost $90. How much is a pair?", "6 90"),
    ],
)
def test_values(text, literals):
    numbers = find_numbers(text, "en", number_reading="people")
    assert [mention.literal for mention in numbers] == literals.split()
