"""Clock times without a.m. or p.m. in English texts, and durations with a colon."""

import pytest

from hf_mwp.runtime.problems import find_numbers, mask_numbers


@pytest.mark.parametrize(
    ("text", "literals"),
    [
        ("School starts at 8 in the morning and ends at 3 in the afternoon. How many hours is it?", "8 15"),
        ("He works from 9 to 5. How many hours is that?", "9 17"),
        ("She works nine to five. How long is her day?", "9 17"),
        ("The store opens at 9 and closes at 6. How many hours is it open?", "9 18"),
        ("I went to bed at 11 and woke up at 7. How many hours did I sleep?", "11 19"),
        ("Class starts at 9 in the morning and ends at 8 at night. How many hours is it?", "9 20"),
        ("The shop opens at 9 and closes at 6. How many minutes is it open?", "540 1080"),
        ("The class starts at 9 and ends at 10:30. How many minutes is it?", "540 630"),
        ("He works 9-5:30. How many hours?", "9 17.5"),
        ("I work 7:30-4, how many hours?", "7.5 16"),
        ("I clocked in at 8:05 and clocked out at 4:35. How many minutes did I work?", "485 995"),
        ("The night shift is from 22:00 to 06:00. How many hours is it?", "22 30"),
        ("The bus leaves at 7.40 and arrives at 8.25. How many minutes does it take?", "460 505"),
        ("The shop opens at 0900 and closes at 1730. How many hours is it open?", "9 17.5"),
        ("The ferry leaves at 2200 and arrives at 0630. How many hours does it take?", "22 30.5"),
        ("She slept from half ten to quarter past six. How many hours did she sleep?", "10.5 18.25"),
        ("He left at 3 and came back at half 5. How long was he away?", "3 5.5"),
        ("It starts at ten and finishes at twenty to one. How many minutes is it?", "600 760"),
        ("It starts at ten to eight and finishes at nine. How many minutes is it?", "470 540"),
        ("It starts at half past six and finishes at ten to eight. How many minutes is it?", "390 470"),
        # A score, ages, counts, prices, no question for hours, an end after its start.
        ("They beat us from 9 to 5 at school. How many hours was that?", "9 5"),
        ("School is for kids of ages from 9 to 5. How many hours is it?", "9 5"),
        ("He sold 9 to 5 kids at school in 3 hours. How many hours are left?", "9 5 3"),
        ("The class grew from 9 to 5 kids. How many hours did it work?", "9 5"),
        ("The share opens at 7.40 and closes at 8.25. How much did it rise?", "7.40 8.25"),
        ("In the code at 0900 and at 1730, how many hours are there?", "0900 1730"),
        ("He works from 9 to 5. How many apples are there?", "9 5"),
        ("He works from 5 to 9. How many hours is that?", "5 9"),
    ],
)
def test_end_is_later_than_the_start(text, literals):
    assert [mention.literal for mention in find_numbers(text, "en")] == literals.split()


@pytest.mark.parametrize(
    ("text", "masked", "literals"),
    [
        ("He worked 7:30 hours at $20 an hour.", "He worked [NUM] hours at $[NUM] an hour.", "7.5 20"),
        ("It took 2:45 hours. How many minutes is that?", "It took [NUM] minutes. How many minutes is that?", "165"),
        ("It left at 15:00 hours with 5 men.", "It left at [NUM] hours with [NUM] men.", "15 5"),
        ("It lasts 1hr30. How many minutes is that?", "It lasts [NUM] minutes. How many minutes is that?", "90"),
        ("It lasts an hour and twenty. How long?", "It lasts [NUM] hours. How long?", "(4/3)"),
        ("an hour and twenty people came", "an hour and [NUM] people came", "20"),
        ("5 hours with a half-hour unpaid break", "[NUM] hours with a [NUM]-hour unpaid break", "5 0.5"),
        ("a half-hour lunch. How many minutes is it?", "a [NUM]-minute lunch. How many minutes is it?", "30"),
        ("a half-hour show has 3 acts", "a half-hour show has [NUM] acts", "3"),
    ],
)
def test_duration(text, masked, literals):
    read = mask_numbers(text, "en")
    assert read.text() == masked
    assert [mention.literal for mention in read.mentions] == literals.split()
