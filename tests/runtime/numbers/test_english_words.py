"""Words that are numbers beside other numbers: a litre for 200 ml glasses, floors in words."""

import pytest

from hf_mwp.runtime.problems import mask_numbers


@pytest.mark.parametrize(
    ("text", "masked", "literals"),
    [
        (
            "A litre of juice is poured into 200 ml glasses. How many glasses?",
            "[NUM] milliliters of juice is poured into [NUM] ml glasses. How many glasses?",
            "1000 200",
        ),
        (
            "I cut 20 cm from a metre of ribbon. How much is left?",
            "I cut [NUM] cm from [NUM] centimeters of ribbon. How much is left?",
            "20 100",
        ),
        (
            "An hour is split into 15 minute turns. How many turns?",
            "[NUM] minutes is split into [NUM] minute turns. How many turns?",
            "60 15",
        ),
        (
            "He climbed from the third floor to the ninth floor, 16 steps each.",
            "He climbed from the [NUM]rd floor to the [NUM]th floor, [NUM] steps each.",
            "3 9 16",
        ),
        (
            "from the second up to the fifth floor, 18 steps",
            "from the [NUM]nd up to the [NUM]th floor, [NUM] steps",
            "2 5 18",
        ),
        # Prices, rates, other quantities in the larger unit, and floors without a way between them.
        (
            "He had a litre of paint at $9 a litre and 250 ml more.",
            "He had a litre of paint at $[NUM] a litre and [NUM] liters more.",
            "9 0.25",
        ),
        ("I poured a litre and 2 litres.", "I poured a litre and [NUM] litres.", "2"),
        ("With a litre of milk, each litre makes 200 g.", "With a litre of milk, each litre makes [NUM] g.", "200"),
        (
            "The second floor has 12 rooms, the third floor 8.",
            "The second floor has [NUM] rooms, the third floor [NUM].",
            "12 8",
        ),
    ],
)
def test_words_beside_numbers(text, masked, literals):
    result = mask_numbers(text, "en", number_reading="people")
    assert result.text() == masked
    assert [mention.literal for mention in result.mentions] == literals.split()
