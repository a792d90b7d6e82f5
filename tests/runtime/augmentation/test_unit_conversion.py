from fractions import Fraction

import pytest

from hf_mwp.runtime.augmentation.unit_conversion import MAX_VALUE, MIN_VALUE
from hf_mwp.runtime.problems import MathWordProblem, convert_units
from hf_mwp.solver.data import load_mwp_dataset, problem_from_row
from hf_mwp.utils.language import language_of


CAR = MathWordProblem("汽车每小时行60千米，3小时行多少千米？", "x=60*3", "180", "car")
READER = MathWordProblem("Tim reads 8 pages in 2 hours. How many pages is that?", "x=8/2", "4", "reader", "en")


def variants(problem, seeds=40):
    """Return the text, equation and answer of each variant that some seed makes."""
    rows = set()
    for seed in range(seeds):
        (new,) = convert_units([problem], seed)
        if new is not None:
            rows.add((new.text, new.equation, new.answer))
    return rows


def test_each_quantity_and_the_question_are_converted():
    assert variants(CAR) == {
        ("汽车每小时行60000米，3小时行多少千米？", "x=60000/1000*3", "180"),
        ("汽车每小时行60千米，180分钟行多少千米？", "x=60*(180/60)", "180"),
        ("汽车每小时行60千米，3小时行多少米？", "x=60*3*1000", "180000"),
    }


def test_english_names_are_in_the_singular_after_one():
    problem = MathWordProblem("Tim runs 60 minutes and sleeps 2 hours. How many laps?", "x=60*2", "120", language="en")
    assert ("Tim runs 1 hour and sleeps 2 hours. How many laps?", "x=1*60*2", "120") in variants(problem)


def test_a_problem_that_converts_already_is_not_converted_by_the_same_factor():
    problem = MathWordProblem("Ann has 300 cents. How many dollars is that?", "x=300/100", "3", language="en")
    assert variants(problem) == set()


def test_a_smaller_unit_is_a_fraction_of_the_larger():
    problem = MathWordProblem("一根绳子长50厘米，剪去0.2米，还剩多少米？", "x=50/100-0.2", "0.3")
    assert {text for text, _, _ in variants(problem)} == {
        "一根绳子长5分米，剪去0.2米，还剩多少米？",
        "一根绳子长500毫米，剪去0.2米，还剩多少米？",
        "一根绳子长50厘米，剪去2分米，还剩多少米？",
        "一根绳子长50厘米，剪去0.2米，还剩多少分米？",
    }


@pytest.mark.parametrize(
    ("text", "equation", "answer"),
    [
        ("一支铅笔2元，3支铅笔多少钱？", "x=2*3", "6"),  # the unit of the answer would change
        ("一根绳子长3米，2根长多少？", "x=3*2", "6"),
        ("Tim runs 3 miles in 2 hours. How far does he run in an hour?", "x=3/2", "1.5"),
        ("汽车3小时行180千米，几小时行60千米？多少千米？", "x=180/3", "60"),  # two questions
        ("小明第3小时行5步，共行多少步？", "x=5*3", "15"),  # an ordinal number
        ("一支笔3元5角，买2支，还有4个多少个？", "x=3*2+4", "10"),  # a quantity of two units
        ("3小时行多少步？每小时3步", "x=3*3", "9"),  # which 3 the equation means is not clear
        ("汽车每小时行60千米，3小时行多少千米？", "x=60*3", "181"),  # the equation is wrong
    ],
)
def test_problem_whose_answer_could_change_is_left_out(text, equation, answer):
    problem = MathWordProblem(text, equation, answer, language=language_of(text))
    assert all(new is None for new in convert_units([problem]))


def test_labels_are_exact(shipped_problems):
    converted = 0
    problems = shipped_problems[:300]
    for problem, new in zip(problems, convert_units(problems), strict=True):
        if new is None:
            continue
        converted += 1
        assert new.id == f"{problem.id}-U"
        assert new.language == problem.language
        ratio = Fraction(new.equation_value) / Fraction(problem.equation_value)
        changed = [value for value in new.values if value not in problem.values]
        if new.answer == problem.answer:
            assert ratio == 1
            assert len(changed) == 1
        else:
            assert ratio != 1
            assert not changed
            changed = [Fraction(new.answer)]
        assert MIN_VALUE <= changed[0] <= MAX_VALUE
        assert new.expression.num_operators > problem.expression.num_operators
    assert converted > 5


def test_seed_decides():
    problems = [CAR, READER] * 10
    first = list(convert_units(problems, 0))
    assert first == list(convert_units(problems, 0))
    assert first != list(convert_units(problems, 1))


def test_loader_converts_units_on_request(tmp_path):
    (tmp_path / "train.jsonl").write_text(f'{{"text": "{CAR.text}", "equation": "{CAR.equation}", "answer": "180"}}\n')
    rows = load_mwp_dataset(tmp_path, augment_units=True)["train"]
    assert len(rows) == 2
    assert problem_from_row(rows[1]).agrees()
