from collections import Counter
from fractions import Fraction

import pytest

from hf_mwp.runtime.problems import write_prices


@pytest.fixture(scope="module")
def problems():
    return list(write_prices(600))


def test_labels_are_exact_and_use_known_constants(problems):
    constants = Counter()
    for problem in problems:
        assert problem.agrees(1e-9)
        assert problem.language == "en"
        constants.update(problem.constants)
    assert set(constants) == {Fraction(1), Fraction(2)}


def test_no_placeholder_is_left(problems):
    assert not any("{" in problem.text or "}" in problem.text for problem in problems)
    assert len({problem.text for problem in problems}) > 560


@pytest.mark.parametrize(
    ("sentence", "question", "value"),
    [
        ("half price", "How much is the discount in dollars?", lambda price, percent: price / 2),
        ("There is a", "What is the sale price?", lambda price, percent: price * (1 - percent)),
        ("There is a", "How much is the discount in dollars?", lambda price, percent: price * percent),
        ("Today it is sold for", "What is the sale price?", lambda price, percent: price * percent),
        ("Today it is sold for", "By how much is it cheaper?", lambda price, percent: price - price * percent),
        ("sales tax is", "in total?", lambda price, percent: price + price * percent),
        ("raises the price", "What is the selling price?", lambda price, percent: price + price * percent),
        ("before the discount?", "before the discount?", lambda price, percent: price / (1 - percent)),
    ],
)
def test_answers_follow_from_price_and_percentage(problems, sentence, question, value):
    matching = [problem for problem in problems if sentence in problem.text and problem.text.endswith(question)]
    assert matching
    for problem in matching:
        price = problem.values[0]
        percent = problem.values[-1]
        assert problem.equation_value == value(price, percent), problem.text


def test_buy_two_get_one_free(problems):
    matching = [problem for problem in problems if "get one free" in problem.text]
    assert matching
    for problem in matching:
        price, two, number = problem.values
        assert two == 2
        assert problem.equation_value == number * price * 2 / 3


def test_seed_decides():
    first = list(write_prices(20, 0))
    assert first == list(write_prices(20, 0))
    assert first != list(write_prices(20, 1))
