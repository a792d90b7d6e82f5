import functools
from fractions import Fraction

import pytest

from hf_mwp.runtime.problems import write_clock_times


@functools.cache
def problems_in(language):
    return list(write_clock_times(300, language=language))


@pytest.mark.parametrize("language", ["en", "zh"])
def test_equations_have_the_numbers_that_are_read(language):
    num_intervals = 0
    for problem in problems_in(language):
        assert problem.number_reading == "people"
        assert problem.equation_value == Fraction(problem.answer) > 0
        assert problem.constants == set()
        assert "{" not in problem.text
        num_intervals += "-" not in problem.equation
    # Most have two times to subtract; in some, the interval is read as one number.
    assert 0 < num_intervals < 150


@pytest.mark.parametrize(
    ("language", "first_question"), [("en", "How many minutes does the journey take?"), ("zh", "路上用了多少分钟？")]
)
def test_journeys_in_minutes_are_differences(language, first_question):
    matching = [problem for problem in problems_in(language) if first_question in problem.text]
    assert matching
    for problem in matching:
        assert problem.expression.to_prefix() == ["-", "N1", "N0"]
        assert problem.values[1] - problem.values[0] == Fraction(problem.answer)


def test_seed_decides():
    first = list(write_clock_times(20, 0))
    assert first == list(write_clock_times(20, 0))
    assert first != list(write_clock_times(20, 1))


def test_other_languages_are_refused():
    with pytest.raises(ValueError, match="`language` must be one of en, zh, not 'fr'"):
        list(write_clock_times(1, language="fr"))
