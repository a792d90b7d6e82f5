import json
import math
from dataclasses import replace
from pathlib import Path

import pytest

from hf_mwp.runtime.expressions import Expression
from hf_mwp.runtime.plausibility import FEATURES, PlausibilityError, PlausibilityReranker
from hf_mwp.runtime.problems import MathWordProblem
from hf_mwp.runtime.problems.math_word_problem import MAX_TEXT_LENGTH


MODEL_CARDS = Path(__file__).parents[3] / "model_cards"


def reranker(language="zh", num_beams=5, min_beams=None, **weights):
    zero = {feature.name: 0.0 for feature in FEATURES}
    weights = zero | {"log_mass": 1.0} | weights
    return PlausibilityReranker(language, weights, num_beams, {"dataset": "x"}, {"a": 1}, min_beams=min_beams)


PEOPLE = MathWordProblem("有5人，走了2人，还剩几人？")


def beam(*trees):
    return [(Expression.from_infix(tree), math.log(probability)) for tree, probability in trees]


BEAM = beam(("N1-N0", 0.5), ("N0/N1", 0.25), ("N0-N1", 0.125))


def test_without_weights_the_probability_decides():
    ranked = reranker().rerank(PEOPLE, BEAM)
    assert [answer.value for answer in ranked] == [-3, 2.5, 3]
    assert [answer.plausibility for answer in ranked] == pytest.approx([4 / 7, 2 / 7, 1 / 7])
    assert [answer.rank for answer in ranked] == [0, 1, 2]
    assert ranked[0].violations == ()
    assert ranked[0].log_probability == pytest.approx(math.log(0.5))


def test_equal_values_vote_together():
    ranked = reranker().rerank(PEOPLE, beam(("N0+N1", 0.3), ("N0-N1", 0.2), ("N0-N1*1", 0.2)))
    assert [(answer.value, answer.rank) for answer in ranked] == [(3, 1), (7, 0)]
    assert ranked[0].expression.to_infix() == "N0-N1"


def test_absurd_answers_fall_behind_and_are_told_why():
    ranked = reranker(negative=-3.0, not_whole_counted=-2.0).rerank(PEOPLE, BEAM)
    # Half of 0.125, 0.5/e^3 and 0.25/e^2 remain.
    assert [answer.value for answer in ranked] == [3, 2.5, -3]
    assert [answer.violations for answer in ranked] == [(), ("2.5 人",), ("negative count",)]


def test_the_kind_and_the_unit_are_told():
    rope = MathWordProblem("绳子长5米，用去2米，还剩多少米？")
    ranked = reranker(negative=-9.0).rerank(rope, BEAM)
    assert ranked[-1].violations == ("negative length",)
    english = MathWordProblem("There are 5 people and 2 cars. How many people are in a car?", language="en")
    assert reranker("en", not_whole_counted=-9.0).rerank(english, BEAM)[-1].violations == ("2.5 people",)


def test_a_merit_of_the_first_is_no_fault_of_the_others():
    rope = MathWordProblem("绳子长5米，用去2米，用去几分之几？")
    trees = beam(("N0/N1", 0.5), ("N1/N0", 0.4))
    # The share of 2/5 is put first since it is small, or since it is no share above 1.
    assert reranker(orders_below=9.0).rerank(rope, trees)[-1].violations == ()
    assert reranker(share_above_one=-9.0).rerank(rope, trees)[-1].violations == ("a share above 1",)


@pytest.mark.parametrize(
    ("language", "text", "violation"),
    [
        ("zh", "绳子长12厘米，剪去55厘米，还剩多少厘米？", "negative length"),
        ("zh", "小明有4个苹果，吃了5个，还剩几个苹果？", "negative count"),
        ("zh", "一桶油重4千克，用去5千克，还剩多少千克？", "negative weight"),
        ("zh", "弟弟4岁，5年前几岁？", "negative age"),
        ("en", "Tom has 4 apples and eats 5. How many apples are left?", "negative count"),
        ("en", "A rope is 4 feet long. 5 feet are cut off. How many feet are left?", "negative length"),
        # Temperatures, heights, floors, debts, points and differences may be negative; money may be owed.
        ("zh", "早上气温是4℃，下降5℃，现在是多少小时？", None),
        ("zh", "潜水员在水下4米，又下潜5米，他的高度是多少米？", None),
        ("zh", "小明从4楼下降5层，到了第几层？", None),
        ("zh", "小明有4元，用了5元，还剩多少元？", None),
        ("zh", "小明欠4个苹果，还了5个，还欠几个？", None),
        ("zh", "甲有4个苹果，乙有5个，甲比乙多几个？", None),
        ("zh", "甲数是4，乙数是5，甲数减乙数是多少？", None),
        ("zh", "-4米加5米是多少米？", None),
        ("en", "It was 4 degrees and fell by 5 degrees. How many degrees is it?", None),
        ("en", "Tom owes 4 apples and pays back 5. How many apples has he?", None),
        ("en", "The lift is on floor 4 and goes down 5 floors. How many floors is it above the street?", None),
        ("en", "Tom has 4 apples and Ann has 5. How many more apples does Tom have than Ann?", None),
    ],
)
@pytest.mark.parametrize("others", [[], [("N0+N1", 0.001)]])
def test_a_negative_count_or_measure_is_a_violation_and_not_plausible(language, text, violation, others):
    problem = MathWordProblem(text, language=language)
    general = PlausibilityReranker.from_pretrained(language)
    answer = min(general.rerank(problem, beam(("N0-N1", 0.9), *others)), key=lambda answer: answer.value)
    if violation is None:
        assert answer.violations == () and answer.plausibility > 0.5
    else:
        assert answer.violations[0] == violation and answer.plausibility <= 0.1
    positive = general.rerank(problem, beam(("N0+N1", 0.9)))[0]
    assert (positive.violations, positive.plausibility) == ((), 1)


def test_an_impossible_answer_keeps_its_rank():
    ranked = reranker(negative=-0.1).rerank(PEOPLE, BEAM)
    assert [answer.value for answer in ranked] == [-3, 2.5, 3]
    assert ranked[0].violations == ("negative count",)
    total = 0.5 * math.exp(-0.1) + 0.25 + 0.125
    assert ranked[0].plausibility == pytest.approx(0.1 * 0.5 * math.exp(-0.1) / total)
    assert ranked[1].plausibility == pytest.approx(0.25 / total)


def test_a_value_is_told_once():
    ranked = reranker(not_whole_counted=-5.0, decimals=-18.0, uneven_last=-4.0).rerank(PEOPLE, BEAM[1:])
    assert ranked[-1].violations == ("2.5 人", "a division with a remainder")


def test_less_probable():
    assert reranker().rerank(PEOPLE, BEAM)[-1].violations == ("less probable",)


def test_ties_keep_the_order_of_the_beam():
    ranked = reranker(log_mass=0.0).rerank(PEOPLE, BEAM)
    assert [answer.rank for answer in ranked] == [0, 1, 2]


def test_a_beam_without_values_has_no_answers():
    assert reranker().rerank(PEOPLE, beam(("N0/(N1-N1)", 0.5))) == []
    assert reranker().rerank(PEOPLE, []) == []


def test_a_text_that_is_too_long_has_no_answers():
    assert reranker().rerank(MathWordProblem("4" * (MAX_TEXT_LENGTH + 1)), []) == []


def test_answer_and_equation_are_not_looked_at():
    solved = MathWordProblem(PEOPLE.text, "5-2", "3")
    assert reranker(negative=-1.0).rerank(solved, BEAM) == reranker(negative=-1.0).rerank(PEOPLE, BEAM)


def test_saved_and_read_again(tmp_path):
    saved = reranker(negative=-1.23456, num_beams=7, min_beams=4)
    saved.save_pretrained(tmp_path)
    read = PlausibilityReranker.from_pretrained(tmp_path)
    assert read.weights == {**saved.weights, "negative": -1.2346}
    assert (read.language, read.num_beams, read.fitted_on, read.measured) == ("zh", 7, {"dataset": "x"}, {"a": 1})
    assert read.min_beams == 4


def test_beams_and_language_are_checked():
    assert reranker(num_beams=5).check("zh") == 5
    assert reranker(num_beams=5).check("zh", 20) == 20
    with pytest.raises(PlausibilityError, match="5 beams.* 4.*num_beams=5"):
        reranker(num_beams=5).check("zh", 4)
    assert reranker(num_beams=5, min_beams=3).check("zh", 3) == 3
    assert reranker(num_beams=5, min_beams=3).check("zh") == 5
    with pytest.raises(PlausibilityError, match="5 beams.* 2.*num_beams=3"):
        reranker(num_beams=5, min_beams=3).check("zh", 2)
    with pytest.raises(PlausibilityError, match="'zh'.*'en'"):
        reranker().rerank(MathWordProblem("5 and 2?", language="en"), BEAM)


def damaged(tmp_path, change):
    reranker().save_pretrained(tmp_path)
    path = tmp_path / "plausibility.json"
    content = json.loads(path.read_text("utf-8"))
    change(content)
    path.write_text(json.dumps(content), "utf-8")
    return tmp_path


@pytest.mark.parametrize(
    ("change", "fault"),
    [
        (lambda c: c.update(feature_list="0"), "feature list '0'.*'3'"),
        (lambda c: c.update(weights={"zero": 1.0}), "average_large"),
        (lambda c: c["weights"].pop("zero"), r"\bzero\b"),
        (lambda c: c["weights"].update(colour=1.0), r"\bcolour\b"),
        (lambda c: c["weights"].update(zero="much"), r"`weights\.zero` must be a number from .*'much'"),
        (lambda c: c["weights"].update(zero=math.nan), r"`weights\.zero`.*nan"),
        (lambda c: c["weights"].update(zero=1e308), r"`weights\.zero`.*1e\+308"),
        (lambda c: c.update(num_beams=10**9), "`num_beams`.* 2 to 1,000.* 1000000000"),
        (lambda c: c.update(num_beams=1), "`num_beams`.* 2.* 1"),
        (lambda c: c.update(min_beams=6), "`min_beams`.*2.*5.* 6"),
        (lambda c: c.update(min_beams=1), "`min_beams` must be an integer from 2 .* 1"),
        (lambda c: c.pop("language"), "`language` is missing"),
        (lambda c: c.update(weights=[1.0]), "`weights` must be an object"),
        (lambda c: c.update(weights=None), "`weights` must be an object"),
        (lambda c: c.update(sort=1), "unknown fields .*sort"),
    ],
)
def test_bad_files_are_named(tmp_path, change, fault):
    with pytest.raises(PlausibilityError, match=fault) as error:
        PlausibilityReranker.from_pretrained(damaged(tmp_path, change))
    assert "plausibility.json" in str(error.value)


@pytest.mark.parametrize("text", ["", "{", "[]", "3", '{"language": "zh"'])
def test_what_is_no_file_of_a_reranker_is_named(tmp_path, text):
    (tmp_path / "plausibility.json").write_text(text, "utf-8")
    with pytest.raises(PlausibilityError, match=r"plausibility.json.*damaged"):
        PlausibilityReranker.from_pretrained(tmp_path)


def test_a_folder_without_one_says_how_to_make_it(tmp_path):
    with pytest.raises(PlausibilityError, match="plausibility.json.*`hf-mwp rerank"):
        PlausibilityReranker.from_pretrained(tmp_path)


def test_the_packages_own_for_chinese_is_that_of_the_published_student():
    published = PlausibilityReranker.from_pretrained(MODEL_CARDS / "mwp-student-3L-gts-math23k")
    assert PlausibilityReranker.from_pretrained("zh") == published


def test_the_packages_own_for_english():
    reranker = PlausibilityReranker.from_pretrained("en")
    assert (reranker.language, reranker.num_beams) == ("en", 20)
    # Nobody has a negative number of apples.
    problem = MathWordProblem("Tom has 4 apples and Ann has 9 more than Tom. How many has Ann?", language="en")
    trees = [
        (Expression.from_prefix(prefix.split()), score) for prefix, score in (("- N0 N1", -0.5), ("+ N0 N1", -1.0))
    ]
    assert [int(answer.value) for answer in reranker.rerank(problem, trees)] == [13, -5]


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
