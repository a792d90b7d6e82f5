import re

import pytest

from hf_mwp.runtime.problems import MathWordProblem, add_distractors


CHINESE = [
    ("食堂运来105千克萝卜，又运来85千克，一共运来多少千克萝卜？", "x=105+85", "190"),
    ("小红有15元，买了3支铅笔，每支2元，还剩多少元？", "x=15-3*2", "9"),
    ("水果店上午卖出苹果20箱，下午卖出30箱，下午比上午多卖出多少箱？", "x=30-20", "10"),
    ("一列火车有12节车厢，每节坐108人，这列火车坐了多少人？", "x=12*108", "1296"),
    ("把一堆皮球分装在4个盒子里，每盒25个，这堆皮球有多少个？", "x=4*25", "100"),
]
ENGLISH = [
    ("Tom has 3 red pens. He buys 4 more. How many pens does he have?", "3+4=7", "7"),
    ("Anna had 25 marbles in a jar. She lost 5 of them. How many marbles are left?", "25-5=20", "20"),
    ("A farm sold 12 baskets. Each held 8 pears. How many pears were sold?", "12*8=96", "96"),
    ("There are 40 cars in the street. 6 leave. How many cars remain?", "40-6=34", "34"),
]


def make_problems(rows):
    problems = []
    for index, (text, equation, answer) in enumerate(rows):
        language = "en" if text.isascii() else "zh"
        problems.append(MathWordProblem(text, equation, answer, str(index), language))
    return problems


def pairs_of(problems, seeds=(0,)):
    """The problems that get distractors, each with its new problem."""
    pairs = []
    for seed in seeds:
        for old, new in zip(problems, add_distractors(problems, seed), strict=True):
            if new is not None:
                pairs.append((old, new))
    return pairs


def count_added(new):
    return int(new.id.rpartition("-D")[2])


@pytest.fixture(scope="module")
def chinese_pairs(chinese_problems):
    return pairs_of(chinese_problems)


def test_numbers_are_added_and_nothing_else_changes(chinese_pairs):
    assert len(chinese_pairs) > 250
    for old, new in chinese_pairs:
        assert len(new.numbers) == len(old.numbers) + count_added(new)
        assert (new.equation, new.answer) == (old.equation, old.answer)
        assert new.agrees()
        assert new.expression.num_operators == old.expression.num_operators
        # All characters of the problem are there in their order, with its question at the end.
        rest = iter(new.text)
        assert all(character in rest for character in old.text)
        assert new.text[-4:] == old.text[-4:]
    assert {count_added(new) for _, new in chinese_pairs} == {1, 2, 3, 4, 5}


def test_added_numbers_differ_from_those_of_the_problem_and_its_answer(chinese_pairs):
    for old, new in chinese_pairs:
        added = [value for value in new.values if value not in old.values]
        assert len(added) == count_added(new)
        assert old.answer_value not in added


def test_seed_decides():
    problems = make_problems(CHINESE)
    assert pairs_of(problems, [0]) == pairs_of(problems, [0])
    assert pairs_of(problems, [0]) != pairs_of(problems, [1])


def test_parts_of_a_count_are_not_more_than_it():
    """There is no other problem to take a clause from, so only parts can be added."""
    problems = make_problems([("操场上有9个男生，又来了7个，一共有多少个人？", "x=9+7", "16")])
    texts = {new.text for _, new in pairs_of(problems, range(60))}
    assert len(texts) > 3
    for text in texts:
        match = re.search(r"(\d)个(?:男生|)，其中(\d)个是(?:(?!，).)+的(?:，(\d)个是)?", text)
        assert int(match[2]) + int(match[3] or 0) <= int(match[1])


@pytest.mark.parametrize(
    ("text", "equation", "answer"),
    [("有3个苹果和4个梨一共几个？", "x=3+4", "7"), ("有3个，又买4个，一共几个？", "x=3+4", "8")],
)
def test_problem_without_a_place_or_a_right_equation_gets_none(text, equation, answer):
    problems = make_problems([*CHINESE, (text, equation, answer)])
    assert list(add_distractors(problems))[-1] is None


def test_english_sentences_of_other_problems_come_before_the_question():
    pairs = pairs_of(make_problems(ENGLISH), range(20))
    assert len({new.text for _, new in pairs}) > 10
    for old, new in pairs:
        assert len(new.numbers) == len(old.numbers) + count_added(new)
        assert new.text.endswith(old.text.split(". ")[-1])
        assert new.agrees()
        assert new.language == "en"
        assert set(new.values) - set(old.values)
        assert old.answer_value not in new.values


def test_sentence_about_the_things_asked_for_is_no_distractor():
    text = "Mia has 9 pens. She finds 2 more. How many pens has she?"
    assert pairs_of(make_problems([ENGLISH[0], (text, "9+2", "11")]), range(20)) == []


def test_distractors_have_the_language_of_the_problem():
    for old, new in pairs_of(make_problems([*ENGLISH, *CHINESE])):
        assert new.language == old.language
        assert new.text.isascii() == old.text.isascii()
