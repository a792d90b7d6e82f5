"""Numbers of English texts that are names, or remarks beside the problem."""

import pytest

from hf_mwp.runtime.problems import find_numbers


@pytest.mark.parametrize(
    ("text", "literals"),
    [
        ("Give your answer to 2 decimal places. 7 boys share 25 kg.", "7 25"),
        ("7 boys share 25 kg. How much each, to 2 d.p.?", "7 25"),
        ("7 boys share 25 kg. Round to the nearest 10.", "7 25"),
        ("24 apples for 6 kids. How many each? A) 4 B) 6 C) 18 (2 marks)", "24 6"),
        ("24 apples for 6 kids. How many each? a. 4 apples b. 6 apples", "24 6"),
        ("24 apples for 6 kids. How many each? [1 mark]", "24 6"),
        ("The 10:30 train has 200 seats and the 11:15 one 180.", "200 180"),
        ("Year 5 has 62 pupils and Year 6 has 58.", "62 58"),
        ("There are 24 kids in class 3A and 26 in class 3B.", "24 26"),
        ("I bought 2 pairs of size 8 shoes for $40 each.", "2 40"),
        ("They won 5-2 before 640 fans.", "640"),
        # Numbers of the problem.
        ("They won 5-2 and then 3-1. How many goals did they score?", "5 2 3 1"),
        ("We won 84-79. By how many points?", "84 79"),
        ("What is 387 rounded to the nearest 10?", "387 10"),
        ("Round 387 to the nearest ten.", "387 10"),
        ("The 10:30 train arrives at 11:15. How many minutes does it take?", "630 675"),
        ("He wears size 8 shoes and his dad size 11 shoes. How many sizes larger are they?", "8 11"),
    ],
)
def test_names_and_remarks(text, literals):
    numbers = find_numbers(text, "en", number_reading="people")
    assert [mention.literal for mention in numbers] == literals.split()
