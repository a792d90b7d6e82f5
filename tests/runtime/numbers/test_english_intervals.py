"""Intervals between clock times in English texts are durations, if the text has other numbers."""

import pytest

from hf_mwp.runtime.problems import find_numbers


@pytest.mark.parametrize(
    ("text", "literals"),
    [
        ("I work 8 to 5 pm with 1 hour of lunch.", "9 1"),
        ("The shop is open from 10 a.m. until 6:30 p.m., 6 days a week.", "8.5 6"),
        ("She works 10pm-6am for $20 an hour.", "8 20"),
        ("A class from 1 pm to 1:45 pm has 3 breaks. How many minutes?", "45 3"),
        # Without a.m. and p.m.
        ("He works 9-5:30 for 5 days at $20 an hour.", "8.5 5 20"),
        ("My shift is 10-6 and I get $15 an hour.", "8 15"),
        ("The shop is open from 10 til 4 and sells 12 cakes an hour.", "6 12"),
        ("She works between nine and five for $12 an hour.", "8 12"),
        ("She works from 22 to 6 for $12 an hour.", "8 12"),
        ("They won 9-5 in 3 hours. How many hours did each half take?", "3"),
        ("Kids ages 9 to 5 pay $5 an hour for school. How much for 3 hours?", "5 3"),
        ("He works from 5 to 9 for $12 an hour.", "5 9 12"),
        # No other number, and a time that is asked for.
        ("She works from 9am to 5pm.", "9 17"),
        ("He sleeps from 11am to 2pm. At what time does he wake up after 3 more hours?", "11 14 3"),
    ],
)
def test_duration(text, literals):
    numbers = find_numbers(text, "en", number_reading="people")
    assert [mention.literal for mention in numbers] == literals.split()
