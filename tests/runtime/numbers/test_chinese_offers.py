"""With 买三送一, the number that is wanted is that which is paid for."""

import pytest

from hf_mwp.runtime.problems import mask_numbers


@pytest.mark.parametrize(
    ("text", "masked", "literals"),
    [
        ("每瓶6元，买三送一，想拿8瓶，付多少元？", "每瓶[NUM]元，买三送一，想拿[NUM]瓶，付多少元？", "6 6"),
        # Of 13, three are gifts.
        ("每个2元，买3个送1个，要13个，付多少元？", "每个[NUM]元，买3个送1个，要[NUM]个，付多少元？", "2 10"),
        # Too few for a gift, and other questions.
        ("每瓶6元，买5送1，要4瓶，付多少元？", "每瓶[NUM]元，买[NUM]送[NUM]，要[NUM]瓶，付多少元？", "6 5 1 4"),
        ("每瓶6元，买5送1，要6瓶，便宜多少元？", "每瓶[NUM]元，买[NUM]送[NUM]，要[NUM]瓶，便宜多少元？", "6 5 1 6"),
        ("买5送1，要12瓶，得到几瓶？", "买[NUM]送[NUM]，要[NUM]瓶，得到几瓶？", "5 1 12"),
    ],
)
def test_number_that_is_paid_for(text, masked, literals):
    result = mask_numbers(text, "zh", number_reading="people")
    assert result.text() == masked
    assert [mention.literal for mention in result.mentions] == literals.split()


def test_note_names_the_offer():
    result = mask_numbers("每盒4元，买三送一，要12盒，付多少元？", "zh", number_reading="people")
    assert result.notes == ("12 was read as 9, the number that is paid for (买三送一)",)
