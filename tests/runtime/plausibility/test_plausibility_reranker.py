import dataclasses
import math
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import pytest

from hf_mwp.runtime.expressions import Expression
from hf_mwp.runtime.plausibility import FEATURES, PlausibilityError, PlausibilityReranker
from hf_mwp.runtime.problems import MathWordProblem
from hf_mwp.runtime.problems.math_word_problem import MAX_TEXT_LENGTH
from hf_mwp.utils.language import language_of
from tests.damage import change_fields


MODEL_CARDS = Path(__file__).parents[3] / "model_cards"
FEATURE_NAMES = [feature.name for feature in FEATURES]


def reranker(language="zh", num_beams=5, min_beams=None, **weights):
    weights = dict.fromkeys(FEATURE_NAMES, 0.0) | {"log_mass": 1.0} | weights
    return PlausibilityReranker(language, weights, num_beams, {"dataset": "x"}, {"a": 1}, min_beams=min_beams)


PEOPLE = MathWordProblem("有5人，走了2人，还剩几人？")


def beam(*trees):
    return [(Expression.from_infix(tree), math.log(probability)) for tree, probability in trees]


def values(ranked):
    return [answer.value for answer in ranked]


BEAM = beam(("N1-N0", 0.5), ("N0/N1", 0.25), ("N0-N1", 0.125))


def test_without_weights_the_probability_decides():
    ranked = reranker().rerank(PEOPLE, BEAM)
    assert values(ranked) == [-3, 2.5, 3]
    assert [answer.plausibility for answer in ranked] == pytest.approx([4 / 7, 2 / 7, 1 / 7])
    assert [answer.rank for answer in ranked] == [0, 1, 2]
    assert ranked[0].violations == ()
    assert ranked[0].log_probability == pytest.approx(math.log(0.5))


def test_equal_values_vote_together():
    ranked = reranker().rerank(PEOPLE, beam(("N0+N1", 0.3), ("N0-N1", 0.2), ("N0-N1*1", 0.2)))
    assert [(answer.value, answer.rank) for answer in ranked] == [(3, 1), (7, 0)]
    assert ranked[0].expression.to_infix() == "N0-N1"


@pytest.mark.parametrize(
    ("text", "language", "value", "rounding"),
    [
        ("50个小朋友去划船，每条船坐6人，至少要租多少条船？", "zh", 9, "up"),
        ("有50米布，做一套衣服用6米，最多能做多少套？", "zh", 8, "down"),
        ("50 children go by van. Each van holds 6 children. How many vans are needed?", "en", 9, "up"),
        ("There are 50 eggs. A box holds 6 eggs. How many full boxes are there?", "en", 8, "down"),
        ("50个鸡蛋，每盒装6个，装满后还剩几个？", "zh", 2, "remainder"),
        ("50 eggs are put in boxes of 6. How many eggs are left over?", "en", 2, "remainder"),
        ("5米的绳子，每2米剪一段，还剩多少米？", "zh", 1, "remainder"),
        ("5个人吃了2个蛋糕，还剩几分之几？", "zh", Fraction(5, 2), None),
        # Amounts have fractions, and so have questions without such words.
        ("50千克米，每袋装6千克，平均每人至少要多少千克？", "zh", Fraction(25, 3), None),
        ("50 eggs are shared by 6 people. How many eggs does each person get?", "en", Fraction(25, 3), None),
    ],
)
def test_quotients_are_rounded_to_whole_things(text, language, value, rounding):
    (answer,) = reranker(language).rerank(MathWordProblem(text, language=language), beam(("N0/N1", 1.0)))
    assert (answer.value, answer.rounding) == (value, rounding)
    if rounding is not None:
        assert answer.violations == ()


def test_only_quotients_with_a_remainder_are_rounded():
    problem = MathWordProblem(
        "48 of 50 children go by van. Each van holds 6. How many vans are needed?", language="en"
    )
    ranked = reranker("en").rerank(problem, beam(("N0/N2", 0.5), ("N0-N1/N2", 0.25), ("N0/N0", 0.1)))
    assert [(answer.value, answer.rounding) for answer in ranked] == [(8, None), (Fraction(119, 3), None), (1, None)]


def test_what_is_left_of_a_sum_is_its_remainder():
    problem = MathWordProblem("30 red and 23 blue pens are put in boxes of 6. How many are left over?", language="en")
    ranked = reranker("en").rerank(problem, beam(("(N0+N1)/N2", 0.5), ("N0-N1", 0.1)))
    assert [(answer.value, answer.rounding) for answer in ranked] == [(5, "remainder"), (7, None)]


def test_numbers_alone_do_not_answer_how_many_are_needed():
    trees = beam(("5", 0.5), ("N0", 0.25), ("N0/N1", 0.125))
    needed = MathWordProblem("50个小朋友去划船，每条船坐6人，至少要租多少条船？")
    assert values(reranker().rerank(needed, trees)) == [9]
    assert values(reranker().rerank(needed, trees[:2])) == [5, 50]
    asked = MathWordProblem("50个小朋友去划船，每条船坐6人，有多少条船？")
    assert values(reranker().rerank(asked, trees)) == [5, 50, Fraction(25, 3)]


def test_absurd_answers_are_ranked_last_with_their_violations():
    ranked = reranker(negative=-3.0, not_whole_counted=-2.0).rerank(PEOPLE, BEAM)
    # Half of 0.125, 0.5/e^3 and 0.25/e^2 remain.
    assert values(ranked) == [3, 2.5, -3]
    assert [answer.violations for answer in ranked] == [(), ("2.5 人",), ("negative count",)]


def test_violation_names_the_kind_or_the_unit_of_the_answer():
    rope = MathWordProblem("绳子长5米，用去2米，还剩多少米？")
    ranked = reranker(negative=-9.0).rerank(rope, BEAM)
    assert ranked[-1].violations == ("negative length",)
    english = MathWordProblem("There are 5 people and 2 cars. How many people are in a car?", language="en")
    assert reranker("en", not_whole_counted=-9.0).rerank(english, BEAM)[-1].violations == ("2.5 people",)


def test_merit_of_the_first_answer_is_no_violation_of_the_others():
    rope = MathWordProblem("绳子长5米，用去2米，用去几分之几？")
    trees = beam(("N0/N1", 0.5), ("N1/N0", 0.4))
    # The share of 2/5 is put first since it is small, or since it is no share above 1.
    assert reranker(orders_below=9.0).rerank(rope, trees)[-1].violations == ()
    assert reranker(share_above_one=-9.0).rerank(rope, trees)[-1].violations == ("a share above 1",)


@pytest.mark.parametrize(
    ("text", "violation"),
    [
        ("绳子长12厘米，剪去55厘米，还剩多少厘米？", "negative length"),
        ("小明有4个苹果，吃了5个，还剩几个苹果？", "negative count"),
        ("一桶油重4千克，用去5千克，还剩多少千克？", "negative weight"),
        ("弟弟4岁，5年前几岁？", "negative age"),
        ("Tom has 4 apples and eats 5. How many apples are left?", "negative count"),
        ("A rope is 4 feet long. 5 feet are cut off. How many feet are left?", "negative length"),
        # Temperatures, heights, floors, debts, points and differences may be negative; money may be owed.
        ("早上气温是4℃，下降5℃，现在是多少小时？", None),
        ("潜水员在水下4米，又下潜5米，他的高度是多少米？", None),
        ("小明从4楼下降5层，到了第几层？", None),
        ("小明有4元，用了5元，还剩多少元？", None),
        ("小明欠4个苹果，还了5个，还欠几个？", None),
        ("甲有4个苹果，乙有5个，甲比乙多几个？", None),
        ("甲数是4，乙数是5，甲数减乙数是多少？", None),
        ("-4米加5米是多少米？", None),
        ("It was 4 degrees and fell by 5 degrees. How many degrees is it?", None),
        ("Tom owes 4 apples and pays back 5. How many apples has he?", None),
        ("The lift is on floor 4 and goes down 5 floors. How many floors is it above the street?", None),
        ("Tom has 4 apples and Ann has 5. How many more apples does Tom have than Ann?", None),
    ],
)
@pytest.mark.parametrize("further_trees", [[], [("N0+N1", 0.001)]])
def test_negative_count_or_measure_is_a_violation_and_not_plausible(text, violation, further_trees):
    language = language_of(text)
    problem = MathWordProblem(text, language=language)
    general = PlausibilityReranker.from_pretrained(language)
    ranked = general.rerank(problem, beam(("N0-N1", 0.9), *further_trees))
    answer = min(ranked, key=lambda answer: answer.value)
    if violation is None:
        assert answer.violations == () and answer.plausibility > 0.5
    else:
        assert answer.violations[0] == violation and answer.plausibility <= 0.1
    positive = general.rerank(problem, beam(("N0+N1", 0.9)))[0]
    assert (positive.violations, positive.plausibility) == ((), 1)


def test_impossible_answer_keeps_its_rank_with_a_tenth_of_its_plausibility():
    ranked = reranker(negative=-0.1).rerank(PEOPLE, BEAM)
    assert values(ranked) == [-3, 2.5, 3]
    assert ranked[0].violations == ("negative count",)
    total = 0.5 * math.exp(-0.1) + 0.25 + 0.125
    assert ranked[0].plausibility == pytest.approx(0.1 * 0.5 * math.exp(-0.1) / total)
    assert ranked[1].plausibility == pytest.approx(0.25 / total)


def test_value_is_in_one_violation_only():
    ranked = reranker(not_whole_counted=-5.0, decimals=-18.0, uneven_last=-4.0).rerank(PEOPLE, BEAM[1:])
    assert ranked[-1].violations == ("2.5 人", "a division with a remainder")


def test_answer_without_a_fault_is_less_probable():
    assert reranker().rerank(PEOPLE, BEAM)[-1].violations == ("less probable",)


def test_ties_keep_the_order_of_the_beam():
    ranked = reranker(log_mass=0.0).rerank(PEOPLE, BEAM)
    assert [answer.rank for answer in ranked] == [0, 1, 2]


@pytest.mark.parametrize("trees", [[], beam(("N0/(N1-N1)", 0.5))])
def test_beam_without_values_has_no_answers(trees):
    assert reranker().rerank(PEOPLE, trees) == []


def test_text_that_is_too_long_has_no_answers():
    assert reranker().rerank(MathWordProblem("4" * (MAX_TEXT_LENGTH + 1)), []) == []


def test_equation_and_answer_of_the_problem_are_not_used():
    solved = MathWordProblem(PEOPLE.text, "5-2", "3")
    assert reranker(negative=-1.0).rerank(solved, BEAM) == reranker(negative=-1.0).rerank(PEOPLE, BEAM)


def test_loaded_reranker_equals_the_saved_one(tmp_path):
    saved = reranker(negative=-1.23456, num_beams=7, min_beams=4)
    saved.save_pretrained(tmp_path)
    loaded = PlausibilityReranker.from_pretrained(tmp_path)
    assert loaded == dataclasses.replace(saved, weights={**saved.weights, "negative": -1.2346})


@pytest.mark.parametrize(
    ("min_beams", "num_beams", "expected"), [(None, None, 5), (None, 20, 20), (3, 3, 3), (3, None, 5)]
)
def test_number_of_beams(min_beams, num_beams, expected):
    assert reranker(num_beams=5, min_beams=min_beams).check("zh", num_beams) == expected


@pytest.mark.parametrize(("min_beams", "num_beams", "least"), [(None, 4, 5), (3, 2, 3)])
def test_too_few_beams_are_refused(min_beams, num_beams, least):
    with pytest.raises(PlausibilityError, match=f"5 beams.* {num_beams}.*num_beams={least}"):
        reranker(num_beams=5, min_beams=min_beams).check("zh", num_beams)


def test_problem_in_another_language_is_refused():
    with pytest.raises(PlausibilityError, match="'zh'.*'en'"):
        reranker().rerank(MathWordProblem("5 and 2?", language="en"), BEAM)


# Field of the file, value and what the error names; tests/runtime/test_hostile_folders.py has further ones.
@pytest.mark.parametrize(
    ("field", "value", "fault"),
    [
        ("feature_list", "0", "feature list '0'.*'3'"),
        ("weights", {"zero": 1.0}, "average_large"),
        ("weights", {"zero": "much"}, r"`weights\.zero`.*'much'"),
        ("weights", {"zero": math.nan}, r"`weights\.zero`.*nan"),
        ("num_beams", 1, "`num_beams`.* 2.* 1"),
        ("min_beams", 6, "`min_beams`.*2.*5.* 6"),
        ("min_beams", 1, "`min_beams`.* 2 .* 1"),
        ("weights", None, "`weights`"),
        ("sort", 1, "sort"),
    ],
)
def test_wrong_field_of_a_file_is_named(tmp_path, field, value, fault):
    reranker().save_pretrained(tmp_path)
    change_fields(tmp_path / "plausibility.json", **{field: value})
    with pytest.raises(PlausibilityError, match=f"plausibility.json.*{fault}"):
        PlausibilityReranker.from_pretrained(tmp_path)


@pytest.mark.parametrize(("removed", "added"), [(["zero"], {}), ([], {"colour": 1.0})])
def test_weights_of_other_features_are_named(removed, added):
    weights = reranker().weights | added
    for name in removed:
        del weights[name]
    with pytest.raises(PlausibilityError, match="|".join([*removed, *added])):
        PlausibilityReranker("zh", weights, 5)


def test_folder_without_a_reranker_is_refused(tmp_path):
    with pytest.raises(PlausibilityError, match="plausibility.json.*`hf-mwp rerank"):
        PlausibilityReranker.from_pretrained(tmp_path)


def test_general_chinese_reranker_is_that_of_the_published_student():
    published = PlausibilityReranker.from_pretrained(MODEL_CARDS / "mwp-student-3L-gts-math23k")
    # Confidence is fitted to one solver.
    assert PlausibilityReranker.from_pretrained("zh") == replace(published, confidence=None)


def test_general_english_reranker_prefers_a_positive_count():
    general = PlausibilityReranker.from_pretrained("en")
    assert (general.language, general.num_beams) == ("en", 20)
    problem = MathWordProblem("Tom has 4 apples and Ann has 9 more than Tom. How many has Ann?", language="en")
    assert values(general.rerank(problem, beam(("N0-N1", 0.6), ("N0+N1", 0.4)))) == [13, -5]


def test_faults_of_the_first_answer_are_reasons_against_it():
    (first,) = reranker(not_whole_counted=-2.0).rerank(PEOPLE, BEAM[1:2])
    assert (first.value, first.violations) == (2.5, ("2.5 人",))
    # A weight above 0 says that the feature is no fault for this solver.
    (first,) = reranker(not_whole_counted=2.0).rerank(PEOPLE, BEAM[1:2])
    assert first.violations == ()


def test_a_verb_is_not_shown_as_a_unit():
    price = MathWordProblem("5 pens cost 2 dollars. How much does a pen cost?", language="en")
    (first,) = reranker("en", not_whole_counted=-2.0).rerank(price, beam(("N1/N0", 0.9)))
    assert (first.value, first.violations) == (pytest.approx(0.4), ())
    ranked = reranker("en", not_whole_counted=-9.0).rerank(price, beam(("N1/N0", 0.9), ("N1*N0", 0.1)))
    assert ranked[-1].violations == ("0.4 answer",)


def test_confidence_is_a_logistic_regression_on_the_softmax_and_the_features():
    plain = reranker()
    confident = replace(plain, confidence={"constant": -1.0, "share": 0.5, "not_whole_counted": -2.0})
    ranked = confident.rerank(PEOPLE, BEAM)
    assert [answer.value for answer in ranked] == [answer.value for answer in plain.rerank(PEOPLE, BEAM)]
    # The softmax of 4/7 has the odds 4/3, that of 2/7 has 2/5.
    assert ranked[0].plausibility == pytest.approx(1 / (1 + math.exp(1 - 0.5 * math.log(4 / 3))))
    assert ranked[1].plausibility == pytest.approx(1 / (1 + math.exp(3 - 0.5 * math.log(2 / 5))))
    # The only value of a beam has the softmax 1, whose log odds are limited to 20.
    (only,) = confident.rerank(PEOPLE, BEAM[:1])
    assert only.plausibility == pytest.approx(1 / (1 + math.exp(1 - 10)))


def test_no_answer_is_more_plausible_than_the_first():
    ranked = replace(reranker(), confidence={"constant": 0.0, "not_whole_counted": 5.0}).rerank(PEOPLE, BEAM)
    assert [answer.plausibility for answer in ranked] == [0.5, 0.5, 0.5]


def test_confidence_is_saved(tmp_path):
    confident = replace(reranker(), confidence={"constant": -1.0, "share": 0.5})
    confident.save_pretrained(tmp_path)
    assert PlausibilityReranker.from_pretrained(tmp_path).confidence == {"constant": -1.0, "share": 0.5}
    with pytest.raises(PlausibilityError, match="temperature"):
        replace(reranker(), confidence={"temperature": 1.0})
