import re

import pytest

from hf_mwp.runtime.problems import MathWordProblem, add_distractors
from hf_mwp.solver.data import problem_from_row
from hf_mwp.solver.data.sources import read_part


TEXTS = [
    ("食堂运来105千克萝卜，又运来85千克，一共运来多少千克萝卜？", "x=105+85", "190"),
    ("小红有15元，买了3支铅笔，每支2元，还剩多少元？", "x=15-3*2", "9"),
    ("水果店上午卖出苹果20箱，下午卖出30箱，下午比上午多卖出多少箱？", "x=30-20", "10"),
    ("一列火车有12节车厢，每节坐108人，这列火车坐了多少人？", "x=12*108", "1296"),
    ("把一堆皮球分装在4个盒子里，每盒25个，这堆皮球有多少个？", "x=4*25", "100"),
]


def problems_of(texts):
    return [MathWordProblem(*each, str(index)) for index, each in enumerate(texts)]


@pytest.fixture(scope="module")
def shipped():
    rows, _ = read_part("math23k:validation")
    return [problem_from_row(row) for row in rows[:300]]


def test_numbers_are_added_and_nothing_else_changes(shipped):
    made = list(add_distractors(shipped))
    pairs = [(old, new) for old, new in zip(shipped, made, strict=True) if new is not None]
    assert len(pairs) > 250
    for old, new in pairs:
        added = int(new.id.rpartition("-D")[2])
        assert 1 <= added <= 5 and len(new.numbers) == len(old.numbers) + added
        assert (new.equation, new.answer) == (old.equation, old.answer) and new.agrees()
        assert new.expression.num_operators == old.expression.num_operators
        # The words of the problem are all there, in their order, and its question is at the end.
        rest = iter(new.text)
        assert all(character in rest for character in old.text)
        assert new.text[-4:] == old.text[-4:]
    assert {int(new.id.rpartition("-D")[2]) for _, new in pairs} == {1, 2, 3, 4, 5}


def test_no_added_number_can_be_taken_for_one_that_counts(shipped):
    for old, new in zip(shipped, add_distractors(shipped), strict=True):
        if new is not None:
            added = [value for value in new.values if value not in old.values]
            assert len(added) == len(new.values) - len(old.values)
            assert old.answer_value not in added


def test_the_seed_decides():
    problems = problems_of(TEXTS)
    first, second, third = ([new.text for new in add_distractors(problems, seed)] for seed in (0, 0, 1))
    assert first == second != third


def test_a_part_of_what_is_counted_is_less_than_it():
    """There is no other problem to take a clause from, so parts are all that can be added."""
    (problem,) = problems_of([("操场上有9个男生，又来了7个，一共有多少个人？", "x=9+7", "16")])
    texts = {new.text for seed in range(60) for new in add_distractors([problem], seed) if new is not None}
    parts = [re.search(r"(\d)个(?:男生|)，其中(\d)个是(?:(?!，).)+的(?:，(\d)个是)?", text) for text in texts]
    assert len(parts) > 3 and all(parts)
    for whole, *counted in (match.groups() for match in parts):
        assert sum(int(count) for count in counted if count) <= int(whole)


def test_what_has_no_place_or_no_sound_equation_stays_out():
    wrong = [("有3个苹果和4个梨一共几个？", "x=3+4", "7"), ("有3个，又买4个，一共几个？", "x=3+4", "8")]
    assert list(add_distractors(problems_of(TEXTS + wrong)))[-2:] == [None, None]


ENGLISH = [
    ("Tom has 3 red pens. He buys 4 more. How many pens does he have?", "3+4=7", "7"),
    ("Anna had 25 marbles in a jar. She lost 5 of them. How many marbles are left?", "25-5=20", "20"),
    ("A farm sold 12 baskets. Each held 8 pears. How many pears were sold?", "12*8=96", "96"),
    ("There are 40 cars in the street. 6 leave. How many cars remain?", "40-6=34", "34"),
]


def english(texts):
    return [MathWordProblem(*each, str(index), language="en") for index, each in enumerate(texts)]


def test_english_sentences_of_other_problems_come_before_the_question():
    problems = english(ENGLISH)
    made = [
        (old, new) for seed in range(20) for old, new in zip(problems, add_distractors(problems, seed), strict=True)
    ]
    assert len({new.text for _, new in made if new is not None}) > 10
    for old, new in made:
        if new is not None:
            assert len(new.numbers) == len(old.numbers) + int(new.id.rpartition("-D")[2])
            assert new.text.endswith(old.text.split(". ")[-1]) and new.agrees() and new.language == "en"
            assert sorted(set(new.values) - set(old.values)) and old.answer_value not in set(new.values)


def test_a_sentence_about_what_is_asked_is_no_distractor():
    problems = english([ENGLISH[0], ("Mia has 9 pens. She finds 2 more. How many pens has she?", "9+2", "11")])
    assert [new for seed in range(20) for new in add_distractors(problems, seed) if new is not None] == []


def test_each_language_has_its_own_distractors():
    problems = [problem for pair in zip(english(ENGLISH), problems_of(TEXTS), strict=False) for problem in pair]
    for old, new in zip(problems, add_distractors(problems), strict=True):
        assert new is None or (new.language == old.language and new.text.isascii() == old.text.isascii())
