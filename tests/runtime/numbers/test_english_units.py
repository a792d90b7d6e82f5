"""Quantities of English texts get the unit of the prices, areas, volumes or speeds beside them."""

import pytest

from hf_mwp.runtime.problems import mask_numbers


@pytest.mark.parametrize(
    ("text", "masked", "literals"),
    [
        (
            "Cheese is $18 a kilo. How much for 250 g?",
            "Cheese is $[NUM] a kilo. How much for [NUM] kilograms?",
            "18 0.25",
        ),
        (
            "Ham is $16 a pound. How much do 12 ounces cost?",
            "Ham is $[NUM] a pound. How much do [NUM] pounds cost?",
            "16 0.75",
        ),
        ("Grapes are $2.40/kg. I want 500 g.", "Grapes are $[NUM]/kg. I want [NUM] kilograms.", "2.40 0.5"),
        (
            "A kilo of nuts costs $12. What do 300 g cost?",
            "A kilo of nuts costs $[NUM]. What do [NUM] kilograms cost?",
            "12 0.3",
        ),
        (
            "A sandbox is 5 ft by 4 ft, filled 6 inches deep. How many cubic feet of sand?",
            "A sandbox is [NUM] ft by [NUM] ft, filled [NUM] feet deep. How many cubic feet of sand?",
            "5 4 0.5",
        ),
        (
            "A board is 2 m long and 30 cm wide. How many square meters is it?",
            "A board is [NUM] m long and [NUM] meters wide. How many square meters is it?",
            "2 0.3",
        ),
        (
            "He drove 2 hours at 50 mph and 30 minutes at 60 mph.",
            "He drove [NUM] hours at [NUM] mph and [NUM] hours at [NUM] mph.",
            "2 50 0.5 60",
        ),
        (
            "I have half an hour and each call is 6 minutes. How many calls?",
            "I have [NUM] minutes and each call is [NUM] minutes. How many calls?",
            "30 6",
        ),
        (
            "Half a kilo of sugar, each cake takes 200 g. How many cakes?",
            "[NUM] grams of sugar, each cake takes [NUM] g. How many cakes?",
            "500 200",
        ),
        (
            "A dose is 500 mg. How many grams are 6 doses?",
            "A dose is [NUM] grams. How many grams are [NUM] doses?",
            "0.5 6",
        ),
        # The question asks for the weight, there is another price, or the unit is defined.
        (
            "Nuts are $5 a kilo. How many grams do I get for $2?",
            "Nuts are $[NUM] a kilo. How many grams do I get for $[NUM]?",
            "5 2",
        ),
        (
            "Tea is $3 per 100 g and $9 a kilo. I need 500 g.",
            "Tea is $[NUM] per [NUM] g and $[NUM] a kilo. I need [NUM] g.",
            "3 100 9 500",
        ),
        (
            "Fudge is $8 a pound. I want 12 ounces. 1 pound is 16 ounces.",
            "Fudge is $[NUM] a pound. I want [NUM] ounces. [NUM] pound is [NUM] ounces.",
            "8 12 1 16",
        ),
    ],
)
def test_units_of_rates_and_areas(text, masked, literals):
    result = mask_numbers(text, "en", number_reading="people")
    assert result.text() == masked
    assert [mention.literal for mention in result.mentions] == literals.split()
