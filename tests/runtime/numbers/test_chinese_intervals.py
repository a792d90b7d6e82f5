"""Intervals between clock times in Chinese texts are durations, if the text has other numbers."""

import pytest

from hf_mwp.runtime.problems import find_numbers


@pytest.mark.parametrize(
    ("text", "literals"),
    [
        ("从上午9时到11时半，休息15分，共多少分钟？", "150 15"),
        ("8点到5点营业，一周开6天", "9 6"),
        ("从下午2点至5点，有3人", "3 3"),
        ("晚上10:15到次日6:30，有3人", "8.25 3"),
        ("从早上7点一刻到8点三刻，跑了5千米", "1.5 5"),
        # No other number, a time that is asked for, scores.
        ("从7时到11时，共几小时？", "7 11"),
        ("8点到10点，3人，还有1小时是几点？", "8 10 3 1"),
        ("以3:2到4:1获胜，有5人", "3 2 4 1 5"),
    ],
)
def test_duration(text, literals):
    numbers = find_numbers(text, "zh", number_reading="people")
    assert [mention.literal for mention in numbers] == literals.split()
