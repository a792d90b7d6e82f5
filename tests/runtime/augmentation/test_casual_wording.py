import functools
import re

import pytest

from hf_mwp.runtime.problems import MathWordProblem, reword_casually
from hf_mwp.solver.data import load_mwp_dataset


BOOKS = MathWordProblem("小明买了3本书，每本15元，一共花了多少元？", "x=3*15", "45")
PENS = MathWordProblem("Ann has 12 pens and 15 books. How many things does she have?", "x=12+15", "27", language="en")


@functools.cache
def variants(problem, seeds=150):
    """Return the texts that some seed makes."""
    problems = [next(reword_casually([problem], seed)) for seed in range(seeds)]
    return {new.text for new in problems if new is not None}


def test_chinese_expressions_are_replaced():
    texts = variants(BOOKS)
    assert any("块" in text and "元" not in text for text in texts)
    assert any("总共" in text or "加起来" in text for text in texts)
    assert any(not text.endswith("？") for text in texts)


def test_english_expressions_are_replaced():
    texts = variants(PENS)
    assert any("how many" in text for text in texts)
    assert any(not text.endswith("?") for text in texts)


def test_units_that_go_without_saying_are_left_out():
    dinner = MathWordProblem("4个人吃饭，烤肉268元，饮料32元，每人出多少元？", "x=(268+32)/4", "75")
    meals = MathWordProblem(
        "A burger costs $9 and fries cost $4. How much do both cost?", "x=9+4", "13", language="en"
    )
    assert any("烤肉268，饮料32" in text for text in variants(dinner))
    assert any("burger costs 9 and fries cost 4" in text for text in variants(meals))


@pytest.mark.parametrize("problem", [BOOKS, PENS])
def test_some_texts_have_an_additional_number(problem):
    num_numbers = [len(re.findall(r"\d+", text)) for text in variants(problem)]
    assert 0.02 < sum(number > 2 for number in num_numbers) / len(num_numbers) < 0.5
    assert min(num_numbers) >= 2


def test_labels_are_exact(shipped_problems):
    num_reworded = 0
    problems = shipped_problems[::6]
    for problem, new in zip(problems, reword_casually(problems), strict=True):
        if new is not None:
            num_reworded += 1
            assert new.text != problem.text
            assert new.id == f"{problem.id}-C"
            assert new.answer == problem.answer
            assert new.agrees()
            assert new.equation_value == problem.equation_value
            assert new.expression.num_operators == problem.expression.num_operators
    assert num_reworded > len(problems) / 2


def test_a_share_of_the_problems_is_reworded_as_all_would_be(shipped_problems):
    problems = shipped_problems[::6]
    reworded = list(reword_casually(problems))
    of_share = list(reword_casually(problems, share=0.3))
    for new, chosen in zip(reworded, of_share, strict=True):
        assert chosen is None or chosen == new
    num_reworded = sum(new is not None for new in reworded)
    assert 0.1 < sum(chosen is not None for chosen in of_share) / num_reworded < 0.5


def test_a_problem_with_a_wrong_equation_is_left_out():
    assert not variants(MathWordProblem("小明有2个苹果，又买3个，共几个？", "x=2+3", "6"))


def test_loader_rewords_problems_on_request(tmp_path):
    row = '{"text": "小明买了3本书，每本15元，一共花了多少元？", "equation": "x=3*15", "answer": "45"}'
    (tmp_path / "train.jsonl").write_text(row, encoding="utf-8")
    (problem,) = load_mwp_dataset(tmp_path, augment_wording=1.0)["train"]
    assert problem["text"] == next(reword_casually([BOOKS])).text
    with pytest.raises(ValueError, match="`augment_wording` must be from 0 to 1, not 1.5"):
        load_mwp_dataset(tmp_path, augment_wording=1.5)
