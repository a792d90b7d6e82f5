"""Scale words are read where a text has or asks for plain numbers of the same unit."""

import pytest

from hf_mwp.runtime.problems import mask_numbers


@pytest.mark.parametrize(
    ("language", "text", "literals"),
    [
        ("zh", "国家人口1.5亿，每6人中有1人上学，上学的有多少亿人？", "1.5 6 1"),
        ("zh", "12万*3=多少万", "12 3"),
        ("zh", "存了2万块，又取出3500元，还剩多少元？", "20000 3500"),
        ("zh", "有2万块砖，又运来3500块，共多少块？", "20000 3500"),
        ("zh", "1999年人口60亿，增加(1/6)，将达多少亿人？", "60 (1/6)"),
        ("zh", "有2万人，3亿人和5000人，共多少万人？", "2 30000 0.5"),
        ("en", "There are 3 million people and 200,000 people. How many million people?", "3 0.2"),
        ("en", "2 million cars and 3 million bikes. How many more bikes?", "2 3000000"),
        ("en", "It weighs 1.5k pounds and a 10k run is 10 km.", "1500 10 10"),
    ],
)
def test_numbers(language, text, literals):
    assert [mention.literal for mention in mask_numbers(text, language).mentions] == literals.split()


def test_scale_that_the_answer_has_is_told():
    masked = mask_numbers("生产40万台，用了5个月，平均每月生产多少台？", "zh")
    assert masked.notes == ("40 is counted in 万, and so is the answer",)
