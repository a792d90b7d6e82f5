"""Feet and inches, prices in words and with a space, things and a half, thousands of things."""

import pytest

from hf_mwp.runtime.problems import mask_numbers


@pytest.mark.parametrize(
    ("text", "masked", "literals"),
    [
        (
            "I'm 5ft 7 and my brother is 6ft 2. How many inches taller is he?",
            "I'm [NUM] inches and my brother is [NUM] inches. How many inches taller is he?",
            "67 74",
        ),
        (
            "He is 5'10 and his sister is 5'4. How many inches taller is he?",
            "He is [NUM] inches and his sister is [NUM] inches. How many inches taller is he?",
            "70 64",
        ),
        (
            "A board is 8' long. I cut off 18\". How many inches are left?",
            "A board is [NUM] inches long. I cut off [NUM] inches. How many inches are left?",
            "96 18",
        ),
        (
            "A rug is 6' by 4'. How many square feet?",
            "A rug is [NUM] feet by [NUM] feet. How many square feet?",
            "6 4",
        ),
        ("The price is $12. 50 and tax is $1 .25.", "The price is $[NUM] and tax is $[NUM].", "12.50 1.25"),
        ("My rent is twelve fifty a month.", "My rent is [NUM] dollars a month.", "1250"),
        ("A ticket costs twelve fifty.", "A ticket costs [NUM] dollars.", "12.5"),
        ("1,2 million people and 300 000 left", "[NUM] people and [NUM] left", "1200000 300000"),
        ("He takes a tablet and a half 3 times a day.", "He takes [NUM] tablets [NUM] times a day.", "1.5 3"),
        ("She ate a sandwich and a half.", "She ate [NUM] sandwiches.", "1.5"),
        ("A coat is $80, now a quarter off.", "A coat is $[NUM], now [NUM] off.", "80 (1/4)"),
        ("A car is $4000. I put a quarter down.", "A car is $[NUM]. I put [NUM] down.", "4000 (1/4)"),
        (
            "He ate one quarter of a pie and she ate one quarter.",
            "He ate [NUM] of a pie and she ate [NUM].",
            "(1/4) (1/4)",
        ),
        ("A game has four quarters of 12 minutes.", "A game has [NUM] quarters of [NUM] minutes.", "4 12"),
        (
            "I may eat 2k calories and had 450 and 620.",
            "I may eat [NUM] calories and had [NUM] and [NUM].",
            "2000 450 620",
        ),
        # Quotes, sentences, years, parts of other things, races.
        ('"I have 18", he said. Tom has 8\'.', '"I have [NUM]", he said. Tom has [NUM]\'.', "18 8"),
        ("Each costs $12. 50 people came.", "Each costs $[NUM]. [NUM] people came.", "12 50"),
        ("He was born in nineteen fifty.", "He was born in [NUM] [NUM].", "19 50"),
        ("She ate 2 apples and a half of the cake.", "She ate [NUM] apples and a half of the cake.", "2"),
        ("I have 3 dimes and a quarter left at $2.", "I have [NUM] dimes and a quarter left at $[NUM].", "3 2"),
        ("I ran a 5k race and 300 m.", "I ran a [NUM]k race and [NUM] m.", "5 300"),
    ],
)
def test_amounts(text, masked, literals):
    result = mask_numbers(text, "en", number_reading="people")
    assert result.text() == masked
    assert [mention.literal for mention in result.mentions] == literals.split()


def test_prices_in_words_are_told():
    notes = mask_numbers("my rent is twelve fifty a month", "en").notes
    assert notes == ("twelve fifty was read as 1250",)
