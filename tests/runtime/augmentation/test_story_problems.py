import random
from fractions import Fraction

import pytest

from hf_mwp.runtime.augmentation.story_problems import _choose_number, _is_possible, _load_kinds, _try
from hf_mwp.runtime.problems import write_stories


LANGUAGES = ["en", "zh"]
KIND = {
    "name": "change",
    "texts": ["{name} buys {count} pens for ${price} each and pays ${paid}."],
    "questions": ["How much change does {name} get?"],
    "equation": "{paid}-{price}*{count}",
    "numbers": {"count": [3], "price": [2], "paid": [20]},
}


def test_a_problem_of_a_kind():
    problem = _try(KIND, "7", "en", random.Random(0))
    assert "buys 3 pens for $2 each and pays $20. How much change does" in problem.text
    assert (problem.equation, problem.answer, problem.kind, problem.id) == ("20-2*3", "14", "change", "7")
    assert problem.expression.to_prefix() == ["-", "N2", "*", "N1", "N0"]


@pytest.mark.parametrize(
    "changes",
    [
        {"numbers": {"count": [3], "price": [9], "paid": [20]}},  # below zero
        {"numbers": {"count": [3], "price": [3], "paid": [20]}},  # equal numbers
        {"equation": "{paid}-{price}*{count}*0.5"},  # a constant that the kind does not name
    ],
)
def test_problems_without_a_possible_answer_are_left_out(changes):
    assert _try({**KIND, **changes}, "", "en", random.Random(0)) is None


def test_constants_are_named():
    kind = {
        **KIND,
        "equation": "{paid}-{price}*{count}*2",
        "constants": ["2"],
        "numbers": {**KIND["numbers"], "price": [1]},
    }
    assert _try(kind, "", "en", random.Random(0)).answer == "14"


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_kind_has_problems_with_each_of_its_texts(language):
    rng = random.Random(0)
    for kind in _load_kinds(language):
        num_problems = 0
        for _ in range(60):
            problem = _try(kind, "", language, rng)
            if problem is not None:
                num_problems += 1
                assert "{" not in problem.text
                assert problem.equation_value == Fraction(problem.answer)
        assert num_problems > 1, kind["name"]


@pytest.mark.parametrize("language", LANGUAGES)
def test_names_of_kinds_differ(language):
    names = [kind["name"] for kind in _load_kinds(language)]
    assert len(set(names)) == len(names)


def test_numbers_of_ranges():
    rng = random.Random(0)
    assert {_choose_number("2..4", rng) for _ in range(50)} == {2, 3, 4}
    assert {_choose_number("0.5..1.5 by 0.5", rng) for _ in range(50)} == {Fraction(1, 2), 1, Fraction(3, 2)}
    assert {_choose_number([7, 0.2], rng) for _ in range(50)} == {7, Fraction(1, 5)}


@pytest.mark.parametrize(
    ("answer", "sorts"),
    [
        (Fraction(5), {"whole", "decimal", "fraction", "negative"}),
        (Fraction(1, 4), {"decimal", "fraction"}),
        (Fraction(1, 3), {"fraction"}),
        (Fraction(-5), {"negative"}),
        (Fraction(10**7), set()),
        (0.5, set()),
    ],
)
def test_sorts_of_answers(answer, sorts):
    possible = {sort for sort in ("whole", "decimal", "fraction", "negative") if _is_possible(answer, sort)}
    assert possible == sorts


def test_seed_decides():
    first = list(write_stories(20, 0))
    assert first == list(write_stories(20, 0))
    assert first != list(write_stories(20, 1))


def test_other_languages_are_refused():
    with pytest.raises(ValueError, match="`language` must be one of en, zh, not 'fr'"):
        list(write_stories(1, language="fr"))
