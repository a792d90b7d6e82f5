"""Periods of rates in English texts are counted in the unit of the rate."""

import pytest

from hf_mwp.runtime.problems import mask_numbers


@pytest.mark.parametrize(
    ("text", "masked"),
    [
        ("It costs $9 a month. How much is two years?", "It costs $[NUM] a month. How much is [NUM] months?"),
        ("He runs 3 miles daily. How far in a week?", "He runs [NUM] miles daily. How far in [NUM] days?"),
        ("We open Tuesday-Saturday and bake 9 pies per day.", "We open [NUM] days and bake [NUM] pies per day."),
        (
            "I read 20 pages every morning. How many in 2 weeks?",
            "I read [NUM] pages every morning. How many in [NUM] days?",
        ),
        (
            "He runs 3 miles each workday. How far in a week?",
            "He runs [NUM] miles each workday. How far in [NUM] weekdays?",
        ),
        ("A 2-year contract costs $45 a month.", "A [NUM] months contract costs $[NUM] a month."),
        ("It is $12 a month. How much for 2.5 years?", "It is $[NUM] a month. How much for [NUM] months?"),
        ("It is $12 a month for 2 and a half years.", "It is $[NUM] a month for [NUM] months."),
        ("He gets $500 a fortnight. How much in a year?", "He gets $[NUM] a fortnight. How much in [NUM] fortnights?"),
        (
            "It moves 30 gallons per minute. How much in 3 hours?",
            "It moves [NUM] gallons per minute. How much in [NUM] minutes?",
        ),
        (
            "He works 10 until 6, Tuesday to Saturday. How many hours a week?",
            "He works [NUM] until [NUM], [NUM] days. How many hours a week?",
        ),
        # A trip, an age, a speed, a number of days.
        (
            "He takes the bus every workday for $3 and works 6 days. How much is one week?",
            "He takes the bus every workday for $[NUM] and works [NUM] days. How much is one week?",
        ),
        ("We left for a night. It is $20 for 2 weeks.", "We left for a night. It is $[NUM] for [NUM] weeks."),
        ("A 2-year-old cat eats 3 tins a month.", "A [NUM]-year-old cat eats [NUM] tins a month."),
        (
            "It goes 60 miles in an hour and uses 2 cups per minute.",
            "It goes [NUM] miles in an hour and uses [NUM] cups per minute.",
        ),
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
