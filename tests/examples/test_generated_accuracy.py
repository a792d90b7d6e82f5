"""The example script that counts the solved generated problems."""

import math

import pytest

from hf_mwp.runtime.problems import find_numbers
from tests.examples.scripts import load_script


class Rounder:
    """A solver that rounds the quotient of the first and the last number in one direction."""

    def __init__(self, language, round_quotient):
        self.language = language
        self.round_quotient = round_quotient

    def __call__(self, text):
        values = [number.value for number in find_numbers(text, self.language)]
        return [{"answer": float(self.round_quotient(max(values) / min(values)))}]


@pytest.mark.parametrize("language", ["en", "zh"])
def test_each_direction_is_right_for_some_problems(language):
    script = load_script("generated_accuracy.py")
    problems = script.select_problems("remainders", 60, language)
    num_up = script.count_right(Rounder(language, math.ceil), problems)
    num_down = script.count_right(Rounder(language, math.floor), problems)
    assert len(problems) < 60
    assert 0 < num_up
    assert 0 < num_down
    assert num_up + num_down <= len(problems)


@pytest.mark.parametrize("name", ["clock times", "stories"])
def test_all_problems_of_the_other_sorts_count(name):
    script = load_script("generated_accuracy.py")
    assert len(script.select_problems(name, 10, "zh")) == 10
