"""Periods of rates in English texts are counted in the unit of the rate."""

import pytest

from hf_mwp.runtime.problems import mask_numbers


@pytest.mark.parametrize(
    ("text", "masked"),
    [
        ("It costs $9 a month. How much is two years?", "It costs $[NUM] a month. How much is [NUM] months?"),
        ("He runs 3 miles daily. How far in a week?", "He runs [NUM] miles daily. How far in [NUM] days?"),
        ("We open Tuesday-Saturday and bake 9 pies per day.", "We open [NUM] days and bake [NUM] pies per day."),
        # No rate for the smaller unit, a number of these units, a year as a date, other periods.
        ("It costs $90 a year.", "It costs $[NUM] a year."),
        ("$5 a month for 3 months. How much in a year?", "$[NUM] a month for [NUM] months. How much in a year?"),
        (
            "He gets $3 a day and $5 a day on weekends in a week.",
            "He gets $[NUM] a day and $[NUM] a day on weekends in a week.",
        ),
        ("Sat is free. Sun to Tue has 3 shows a day.", "Sat is free. Sun to Tue has [NUM] shows a day."),
    ],
)
def test_period_in_the_unit_of_the_rate(text, masked):
    assert mask_numbers(text, "en", number_reading="people").text() == masked


def test_longer_texts_keep_their_periods():
    text = f"It costs $9 a month. {'She likes it very much. ' * 5}How much is it for 2 years?"
    assert mask_numbers(text, "en", number_reading="people").mentions[-1].value == 2
