import random
import re
from datetime import datetime
from fractions import Fraction

import pytest

from hf_mwp.runtime.augmentation.story_kinds import StoryKind, _choose_number, _is_possible, load_story_kinds


TABLE = {
    "name": "change",
    "texts": ["{name} buys {count} pens for ${price} each and pays ${paid}."],
    "questions": ["How much change does {name} get?"],
    "equation": "{paid}-{price}*{count}",
    "numbers": {"count": [3], "price": [2], "paid": [20]},
}


def write(**changes):
    kind = StoryKind.from_table({**TABLE, **changes})
    return kind.try_to_write("7", "en", random.Random(0))


def test_a_problem_of_a_kind():
    problem = write()
    assert "buys 3 pens for $2 each and pays $20. How much change does" in problem.text
    assert (problem.equation, problem.answer, problem.kind, problem.id) == ("20-2*3", "14", "change", "7")
    assert problem.expression.to_prefix() == ["-", "N2", "*", "N1", "N0"]


@pytest.mark.parametrize(
    "changes",
    [
        {"numbers": {"count": [3], "price": [9], "paid": [20]}},  # below zero
        {"numbers": {"count": [3], "price": [3], "paid": [20]}},  # equal numbers
        {"equation": "{paid}/({price}-2)"},  # no value
        {"equation": "{paid}-{price}*{count}*0.5"},  # a constant that the kind does not name
        {"texts": ["{name} buys {count}3 pens for ${price} each and pays ${paid}."]},  # read as another number
    ],
)
def test_impossible_problems_are_not_written(changes):
    assert write(**changes) is None


def test_constants_are_named():
    changes = {"equation": "{paid}-{price}*{count}*0.5", "constants": ["0.5"]}
    assert write(**changes).answer == "17"
    # Whether 3 is the constant or the number of pens would be a guess.
    assert write(**{**changes, "constants": ["0.5", "3"]}) is None


def test_numbers_that_are_read_in_another_unit():
    kind = StoryKind.from_table(
        {
            "name": "field",
            "texts": ["地长{a}米，宽{b}米，"],
            "questions": ["面积是多少公顷？"],
            "equation": "{a}*{b}",
            "numbers": {"a": [200], "b": [150]},
            "unit_factors": {"a": "1/100", "b": "1/100"},
        }
    )
    problem = kind.try_to_write("7", "zh", random.Random(0))
    assert (problem.text, problem.equation, problem.answer) == ("地长200米，宽150米，面积是多少公顷？", "2*1.5", "3")
    assert problem.agrees()


def test_words_and_people():
    changes = {"texts": ["{name} and {other} buy {count} {thing} for ${price} each and pay ${paid}."]}
    problem = write(words={"thing": ["kites"]}, **changes)
    first, _, second, *_ = problem.text.split()
    assert first != second
    assert "3 kites for $2" in problem.text


@pytest.mark.parametrize(("counted_ends", "more"), [("both", 1), ("one", 0)])
def test_days_between_dates(counted_ends, more):
    text = "How many days are there from {start} to {end}?"
    if counted_ends == "both":
        text = text.replace("?", ", inclusive?")
    kind = StoryKind("days", ["{name} asks."], [text], "{days}", {}, counted_ends=counted_ends)
    rng = random.Random(0)
    for _ in range(20):
        problem = kind.try_to_write("7", "en", rng)
        first, last = _read_dates(problem.text)
        assert int(problem.answer) == (last - first).days + more
        assert problem.expression.to_prefix() == ["N0"]


def _read_dates(text):
    """The two dates of a text in English."""
    dates = []
    for date in re.findall(r"from (.+?) to (.+?)[?,]", text)[0]:
        month = re.search(r"[A-Z]\w+", date)[0]
        day = re.search(r"\d+", date)[0]
        dates.append(datetime.strptime(f"{day} {month} 2025", "%d %B %Y"))
    return dates


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"texts": []}, "Kind 'change': `texts` is empty"),
        ({"answers": "round"}, "`answers` must be one of whole, decimal, fraction, negative, not 'round'"),
        ({"questions": ["How many {things}?"]}, "'How many {things}\\?' has the unknown placeholder 'things'"),
        ({"equation": "{paid}-{cost}"}, "`equation` has the unknown placeholder 'cost'"),
        ({"digits": 3}, "unknown field 'digits'"),
        ({"counted_ends": "two"}, "`counted_ends` must be one of both, one, none, not 'two'"),
        ({"texts": ["From {start} to {end}, {name} works."]}, "has the unknown placeholder 'end'"),
        ({"equation": "{price}*{days}"}, "`equation` has the unknown placeholder 'days'"),
        ({"unit_factors": {"cost": "1/10"}}, "`unit_factors` has the unknown placeholder 'cost'"),
    ],
)
def test_invalid_kinds(changes, message):
    with pytest.raises(ValueError, match=message):
        StoryKind.from_table({**TABLE, **changes})


def test_missing_field():
    with pytest.raises(ValueError, match="Kind 'change': `equation` is missing"):
        StoryKind.from_table({name: value for name, value in TABLE.items() if name != "equation"})


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("kinds = [", "kinds.toml: "),
        ("", r"kinds.toml has no table \[\[kinds\]\]"),
        ("[[kinds]]\nname = 'fares'", "kinds.toml: Kind 'fares': `texts` is missing"),
    ],
)
def test_invalid_files(tmp_path, text, message):
    file = tmp_path / "kinds.toml"
    file.write_text(text)
    with pytest.raises(ValueError, match=message):
        load_story_kinds(file)


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
    ],
)
def test_sorts_of_answers(answer, sorts):
    possible = {sort for sort in ("whole", "decimal", "fraction", "negative") if _is_possible(answer, sort)}
    assert possible == sorts
