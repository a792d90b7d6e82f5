"""Chinese words whose numeral is no number of a problem."""

import pytest

from hf_mwp.runtime.problems import find_numbers


@pytest.mark.parametrize("reading", ["plain", "people"])
@pytest.mark.parametrize(
    ("text", "numbers"),
    [
        ("三轮车有五辆，自行车有六辆", ["5", "6"]),
        ("千纸鹤折了三只", ["3"]),
        ("七巧板有两副，八宝粥有四罐", ["2", "4"]),
        ("三年级二班有四十人", ["40"]),
        ("五一节去了三天，十一长假去了四天", ["3", "4"]),
        ("百米赛跑跑了五次", ["5"]),
        # The number of wheels is needed.
        ("三轮车有五辆，一共有多少个轮子", ["3", "5"]),
        # A number that only ends like such a word.
        ("二十一本书", ["21"]),
    ],
)
def test_words_with_numerals(text, numbers, reading):
    assert [str(mention.value) for mention in find_numbers(text, "zh", number_reading=reading)] == numbers


def test_the_original_reading_is_unchanged():
    mentions = find_numbers("三轮车有五辆", "zh", number_reading="original")
    assert [str(mention.value) for mention in mentions] == ["3", "5"]
