"""Intervals between dates in English texts are days or nights, if the text has a number for each of them."""

import pytest

from hf_mwp.runtime.problems import mask_numbers


@pytest.mark.parametrize(
    ("text", "masked", "values"),
    [
        (
            "We checked in on June 28 and checked out on July 3 at $90 a night.",
            "We checked in [NUM] nights at $[NUM] a night.",
            [5, 90],
        ),
        ("We arrive June 28 and leave July 3. How many nights?", "We arrive [NUM] nights. How many nights?", [5]),
        ("We arrive 28th June and leave 3rd July at £80/night.", "We arrive [NUM] nights at £[NUM]/night.", [5, 80]),
        ("It is $90/night from Aug. 4 to Aug. 9.", "It is $[NUM]/night [NUM] nights.", [90, 5]),
        ("It is $9 a day from Aug 4-9.", "It is $[NUM] a day [NUM] days.", [9, 6]),
        (
            "It was due on Oct 3 and was returned on Oct 12. The fine is 15 cents a day.",
            "It was due [NUM] days. The fine is [NUM] cents a day.",
            [9, 15],
        ),
        # No number for each day, no interval.
        (
            "We arrive June 28 and leave July 3. We pay $90.",
            "We arrive June [NUM] and leave July [NUM]. We pay $[NUM].",
            [28, 3, 90],
        ),
        (
            "On June 28 he sold 5 cups and on July 3 he sold 9 at $2 a day.",
            "On June 28 he sold [NUM] cups and on July 3 he sold [NUM] at $[NUM] a day.",
            [5, 9, 2],
        ),
    ],
)
def test_days_and_nights(text, masked, values):
    read = mask_numbers(text, "en", number_reading="people")
    assert read.text() == masked
    assert [mention.value for mention in read.mentions] == values
