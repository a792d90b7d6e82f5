"""Features by name; the list itself is frozen, since published weights are for it."""

import hashlib
import json

import pytest

from hf_mwp.runtime.expressions import Expression
from hf_mwp.runtime.plausibility import FEATURE_LIST, FEATURES, Question, candidate_answers
from hf_mwp.runtime.plausibility.features import feature_row
from hf_mwp.runtime.problems import MathWordProblem


FEATURE_NAMES = [feature.name for feature in FEATURES]


def features(text, equation, language="zh"):
    question = Question.read(MathWordProblem(text, language=language, number_reading="original"))
    (answer,) = candidate_answers(question, [(Expression.from_infix(equation), -1.0)])
    return dict(zip(FEATURE_NAMES, feature_row(answer), strict=True))


APPLES = "小明有5个苹果，吃了2个，分给3人，每人还剩几个？"
ROPE = "绳子长5米，用去(1/4)，还剩多少米？"
PART = "男生12人，女生8人，男生占全班的几分之几？"


@pytest.mark.parametrize(
    ("text", "equation", "expected"),
    [
        (
            APPLES,
            "N0-N1",
            {"log_mass": -1.0, "negative": 0, "not_whole_counted": 0, "unused_any": 1, "unused_amounts": 1},
        ),
        (APPLES, "N1-N0", {"negative": 1}),
        (APPLES, "N0-N1-N2", {"zero": 1}),
        (APPLES, "N0/N1", {"not_whole_counted": 1, "uneven_last": 1}),
        (ROPE, "N0*N1", {"not_whole_counted": 0, "not_whole_measure": 1}),
        (APPLES, "N0/N2", {"inexact_other": 1, "denominator": pytest.approx(0.4771, abs=0.0001), "decimals": 1}),
        (PART, "N0/(N0+N1)", {"inexact_share": 0, "share_above_one": 0}),
        (PART, "N0/N1", {"share_above_one": 1}),
        (PART, "N0/N0", {"share_one": 1}),
        (APPLES, "N0*3.14", {"digits": 3, "digits_above": 2, "decimals": 0.25}),
        (APPLES, "N0/N1/N0/N0", {"denominator": 1}),
        (APPLES, "N1^0.5", {"denominator": 6}),
        (APPLES, "3*N2", {"numerator": 1}),
        (APPLES, "N0*N1", {"round": 1}),
        (APPLES, "N0-N0", {"round": 0}),
        (APPLES, "N0*0.0003+N1", {"step_decimals": 1}),
        (APPLES, "N0/N2+N1", {"step_decimals": 1.25}),
        (APPLES, "N0*3.14-N1", {"step_digits": 3}),
        (APPLES, "(N0/N1/N0/N0+1)*N1", {"step_denominator": 1}),
        (APPLES, "3*N2/N1", {"step_numerator": 1}),
        (APPLES, "N1-N0+N2", {"negative_step": 1}),
        (APPLES, "N0/N1*N1", {"uneven_step": 1}),
        (APPLES, "N0-N2", {"in_text": 1, "in_text_used": 0}),
        (ROPE, "N0", {"unused_ratios": 1}),
        (ROPE, "N0-N1", {"shares_added": 1}),
        (APPLES, "N0+N0+N0", {"used_twice": 2}),
        (APPLES, "(N0+1)*1", {"constants": 2, "by_one": 1}),
        (APPLES, "(N0-N0)*N1", {"same_operands": 1}),
        (APPLES, "N0*N1*N2*N0*N1", {"orders_above": pytest.approx(1.7782, abs=0.0001)}),
        (APPLES, "N0/N0", {"orders_below": pytest.approx(0.301, abs=0.0001)}),
        (APPLES, "N2-N1", {"inversions": 1}),
        (APPLES, "N0+N1", {"left_by_sum": 1, "left_large": 1}),
        (APPLES, "N0-N1/N2", {"depth": 2, "operators": 2}),
        (PART, "N0-N1", {"unit_of_share": 1}),
        (PART, "N0*N1", {"share_by_product": 1}),
    ],
)
def test_values_of_features(text, equation, expected):
    row = features(text, equation)
    assert {name: row[name] for name in expected} == expected


@pytest.mark.parametrize(("number", "name"), [("1e-200", "orders_above"), ("1e200", "orders_below")])
def test_orders_of_numbers_with_hundreds_of_digits(number, name):
    assert features(f"甲有{number}克，乙有{number}克，一共有多少克？", "1/N0")[name] == 4


def test_features_have_different_names_and_a_meaning():
    assert len(set(FEATURE_NAMES)) == len(FEATURE_NAMES)
    assert all(feature.meaning for feature in FEATURES)


def test_english_features():
    text = "Tom has 5 apples and eats 2. How many apples are left?"
    assert features(text, "N0/N1", "en")["not_whole_counted"] == 1
    assert features(text, "N0+N1", "en")["left_large"] == 1


EXAMPLES = [
    (APPLES, "(N0-N1)/N2"),
    (APPLES, "N1-N0"),
    (ROPE, "N0*(1-N1)"),
    (ROPE, "N0/N1-3.14"),
    (PART, "N0/(N0+N1)"),
    ("一件衣服原价80元，打9折，便宜20%，现价多少钱？", "N0*N1/10"),
    ("8天完成20%，照这样，一共要多少天？", "N0/N1"),
    ("圆的半径3厘米，面积是多少平方厘米？", "3.14*N0^2"),
]


def test_changed_features_need_a_new_version_of_the_list():
    """Published weights are for what is measured here: a change needs another FEATURE_LIST, and new weights."""
    rows = []
    for text, equation in EXAMPLES:
        rows.append([round(value, 6) for value in features(text, equation).values()])
    content = json.dumps([FEATURE_NAMES, rows]).encode()
    digest = hashlib.blake2b(content, digest_size=4).hexdigest()
    assert (FEATURE_LIST, digest) == ("3", "61af730d")


def test_numbers_are_compared_with_the_question():
    text = "李奶奶养了3只公鸡，养了15只母鸡。书包里放6支笔。李奶奶一共养了多少只鸡？"
    question = Question.read(MathWordProblem(text))
    # 李, 奶, 养 and 鸡 count, 只 and 了 do not.
    assert question.asked == pytest.approx((1, 2 / 3, 0))
    assert question.related == pytest.approx((1, 2 / 3, 0))
    row = features(text, "N0+N1")
    for name in ("no_operation", "lone_asked", "unused_asked", "unused_related"):
        assert row[name] == 0
    assert row["used_asked"] == pytest.approx(5 / 6)
    assert row["used_unrelated"] == pytest.approx(1 / 3)
    row = features(text, "N0")
    assert (row["no_operation"], row["lone_asked"], row["used_unrelated"]) == (1, 1, 0)
    assert row["unused_asked"] == row["unused_related"] == pytest.approx(2 / 3)


def test_number_of_the_clause_that_asks_is_related_to_the_question():
    question = Question.read(MathWordProblem("Tom has 3 cats. How many legs do 4 cats have?", language="en"))
    assert question.asked == question.related == pytest.approx((1 / 3, 1))
