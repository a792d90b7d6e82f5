import tomllib
from fractions import Fraction
from pathlib import Path

import pytest

from hf_mwp.runtime.expressions import Expression
from hf_mwp.runtime.plausibility import question as question_module
from hf_mwp.runtime.plausibility.question import RATIO, Question, read_question_words
from hf_mwp.runtime.problems import MathWordProblem


def read(text, language="zh"):
    return Question.read(MathWordProblem(text, language=language))


@pytest.mark.parametrize(
    ("text", "kind", "unit"),
    [
        ("小明有4个苹果，又买了2个，一共有多少个？", "counted", "人"),
        ("停车场有20辆车，开走8辆，还剩几辆？", "counted", "辆"),
        ("绳子长5米，用去2米，还剩多少米．", "length", "米"),
        ("甲数是乙数的(3/4)，乙数是甲数的几分之几？", "share", None),
        ("长方形长8厘米，宽3厘米，面积是多少平方厘米？", "area", "平方厘米"),
        ("今年爸爸40岁，儿子10岁，爸爸比儿子大多少岁？", "age", "岁"),
        ("8是2的多少倍？", "times", "倍"),
        ("一件衣服80元，打8折后多少钱？", "money", "元"),
        ("3小时行180千米，平均每小时行多少千米？", "length", "千米"),
        ("12加8，和=？", None, None),
        ("Tom has 4 apples and 2 pears. How many fruits does he have?", "counted", "fruit"),
        ("Tom has 4 apples. How many more apples does he need for 9?", "counted", "apple"),
        ("A train goes 60 miles in 2 hours. How many miles does it go in 5 hours?", "length", "miles"),
        ("A pen costs 2 dollars. How much do 5 pens cost?", "money", None),
        ("He ran for 30 minutes. How many hours is that?", "time", "hours"),
        ("3 of 4 balls are red. What fraction of the balls is red?", "share", None),
    ],
)
def test_kind_and_unit_of_the_answer(text, kind, unit):
    question = read(text, "en" if text.isascii() else "zh")
    assert question.kinds == ({kind} if kind else set())
    assert question.unit == unit


def test_units_of_the_numbers():
    question = read("绳子长5米，用去20%，又用去(1/4)，还有(3/4)米，每段2米，是它的3倍，1天剩几米？")
    assert question.values == (5, Fraction(1, 5), Fraction(1, 4), Fraction(3, 4), 2, 3, 1)
    # One for each of something else is no amount.
    assert question.units == ("米", RATIO, RATIO, "米", None, RATIO, "天")
    assert question.amounts == (5, Fraction(3, 4), 2, 1)
    assert question.cues == {"left"} and not question.all_whole


def test_without_amounts_the_amount_is_one():
    assert read("几？").amounts == (1,)
    assert read("50%是几？").amounts == (1,)


def test_cues_are_those_of_the_clause_that_asks():
    question = read("一共有多少人不知道，女生20人，男生比女生多5人，男生多少人？（用方程解）")
    assert "total" not in question.cues


def test_a_long_text_is_read_in_linear_time():
    # Comparing all pairs of clauses would take minutes.
    question = read("小明有5个苹果。" * 12_000 + "小明有几个苹果？")
    assert question.asked == question.related == (2 / 3,) * 512


@pytest.mark.parametrize("text", ["", "。。", "？", "3", "多少", "几" * 1000, "1/2" * 50])
@pytest.mark.parametrize("language", ["zh", "en"])
def test_any_text_is_read(text, language):
    assert isinstance(read(text, language), Question)


@pytest.mark.parametrize("language", ["zh", "en"])
def test_equal_units_have_one_name_of_the_same_kind(language):
    words = read_question_words(language)
    assert set(words.same.values()) <= set(words.kind_of)
    assert {words.kind_of[name] for name in words.same.values()} >= {"length", "weight", "time"}
    for name, first in words.same.items():
        assert words.kind_of[name] == words.kind_of[first], name


@pytest.mark.parametrize("language", ["zh", "en"])
def test_groups_of_words_have_a_reason(language):
    path = Path(question_module.__file__).with_name(f"words_{language}.toml")
    content = tomllib.loads(path.read_text(encoding="utf-8"))
    for group in content["kinds"] + content["cues"]:
        assert group["reason"].strip(), group["name"]
        assert group.get("units") or group.get("words")


def test_first_numbers_and_the_question_of_a_very_long_text_are_read():
    problem = MathWordProblem("盒里有5个苹果，" * 1000 + "一共有多少千克？")
    question = Question.read(problem)
    for name in ("values", "literals", "units", "asked", "related"):
        assert len(getattr(question, name)) == 512
    assert question.unit == "千克"
    trees = [(Expression.from_prefix(["+", "N0", "N700"]), -0.5)]
    assert len(Question.read(problem, trees).values) == 701
