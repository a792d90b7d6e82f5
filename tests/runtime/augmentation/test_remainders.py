import functools
import math

import pytest

from hf_mwp.runtime.plausibility.question import Question
from hf_mwp.runtime.problems import write_remainders


ROUND = {
    "up": lambda quotient, divisor: math.ceil(quotient),
    "down": lambda quotient, divisor: math.floor(quotient),
    "remainder": lambda quotient, divisor: (quotient - math.floor(quotient)) * divisor,
}


@functools.cache
def problems_in(language):
    return list(write_remainders(300, language=language))


@pytest.mark.parametrize("language", ["en", "zh"])
def test_answers_are_the_quotients_as_the_question_rounds_them(language):
    num_rounded = 0
    for problem in problems_in(language):
        quotient = problem.equation_value
        if quotient.denominator == 1:
            assert problem.answer == str(quotient)
            continue
        num_rounded += 1
        rounded = ROUND[Question.read(problem).rounding](quotient, problem.values[-1])
        assert problem.answer == str(rounded), problem.text
    assert 150 < num_rounded < 270


@pytest.mark.parametrize(
    ("language", "end", "rounded"),
    [
        ("en", "What is the smallest number of buses needed?", math.ceil),
        ("en", "How many full boxes are there?", math.floor),
        ("zh", "至少要租多少条船？", math.ceil),
        ("zh", "最多能剪几段？", math.floor),
        ("en", "How many are left over?", lambda quotient: quotient % 1),
        ("zh", "余数是多少？", lambda quotient: quotient % 1),
    ],
)
def test_answer_of_a_question(language, end, rounded):
    matching = [problem for problem in problems_in(language) if problem.text.endswith(end)]
    assert matching
    for problem in matching:
        total, size = problem.values[0], problem.values[-1]
        if len(problem.values) == 2:
            total, size = max(problem.values), min(problem.values)
        else:
            total += problem.values[1]
        answer = rounded(total / size)
        if answer < 1:
            answer *= size
        assert problem.answer == str(answer) != "0"


def test_answers_of_training_data_are_the_quotients():
    for problem in write_remainders(50, rounded=False):
        assert problem.agrees(1e-9)


def test_seed_decides():
    first = list(write_remainders(20, 0))
    assert first == list(write_remainders(20, 0))
    assert first != list(write_remainders(20, 1))
    assert not any("{" in problem.text for problem in first)


def test_other_languages_are_refused():
    with pytest.raises(ValueError, match="`language` must be one of en, zh, not 'fr'"):
        list(write_remainders(1, language="fr"))
