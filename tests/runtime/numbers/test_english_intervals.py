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
        # No other number, and a time that is asked for.
        ("She works from 9am to 5pm.", "9 17"),
        ("He sleeps from 11am to 2pm. At what time does he wake up after 3 more hours?", "11 14 3"),
    ],
)
def test_duration(text, literals):
    numbers = find_numbers(text, "en", number_reading="people")
    assert [mention.literal for mention in numbers] == literals.split()
