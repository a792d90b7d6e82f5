"""The example script that counts the solved divisions with a remainder."""

import math

import pytest

from tests.examples.scripts import load_script


class Rounder:
    """A solver that rounds the quotient of the first and the last number in one direction."""

    def __init__(self, language, round_quotient):
        self.reader = self
        self.language = language
        self.round_quotient = round_quotient

    def __call__(self, text):
        from hf_mwp.runtime.problems import find_numbers

        values = [number.value for number in find_numbers(text, self.language)]
        return [{"answer": float(self.round_quotient(max(values) / min(values)))}]


@pytest.mark.parametrize("language", ["en", "zh"])
def test_each_direction_is_right_for_some_problems(language):
    count_right = load_script("remainder_accuracy.py").count_right
    num_problems, num_up = count_right(Rounder(language, math.ceil), 60)
    num_same, num_down = count_right(Rounder(language, math.floor), 60)
    assert num_problems == num_same < 60
    assert 0 < num_up < num_problems
    assert 0 < num_down < num_problems
    assert num_up + num_down <= num_problems
