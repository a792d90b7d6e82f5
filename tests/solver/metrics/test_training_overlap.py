import re

from hf_mwp.runtime.problems import MathWordProblem
from hf_mwp.solver.data import TrainingTexts
from hf_mwp.solver.metrics import PredictionScore, TrainingOverlap


TEXTS = ["小明有4个苹果", "小明有5个苹果", "求面积1", "求周长1"]
PROBLEMS = [MathWordProblem(text, "x=1", "1") for text in TEXTS]
SCORES = [PredictionScore(right, right, right, None, "correct", "low") for right in (True, True, False, True)]
TRAINED = TrainingTexts.from_texts(["小明有四个苹果。"], ["a.txt"])


def shares(reports):
    return {name: (each["num_problems"], each.get("answer_accuracy")) for name, each in reports.items()}


def test_three_groups_beside_all():
    overlap = TrainingOverlap(TRAINED, part=["求周长2"])
    assert shares(overlap.reports(PROBLEMS, SCORES)) == {
        "all problems": (4, 0.75),
        "masked text not in training data": (2, 0.5),
        "exact text not in training data": (3, 2 / 3),
        "exact text in training data": (1, 1.0),
    }
    assert overlap.flags(TEXTS[1]) == {"exact_text_in_training_data": False, "masked_text_in_training_data": True}
    assert re.search("1 of .*4 problems", overlap.remark(PROBLEMS))
    assert overlap.remark(PROBLEMS[1:]) == ""
    record = overlap.record(PROBLEMS[1:])
    assert record == {"known": True, "compared_with": "training data", "remark": ""} | TRAINED.to_dict()


def test_groups_of_no_problem_are_there():
    reports = TrainingOverlap(TrainingTexts()).reports(PROBLEMS, SCORES)
    assert shares(reports)["exact text in training data"] == (0, None)
    assert shares(reports)["masked text not in training data"] == (4, 0.75)


def test_without_digests_the_training_part_stands_in_and_is_named():
    overlap = TrainingOverlap(None, part=["求周长2"])
    assert shares(overlap.reports(PROBLEMS, SCORES))["masked text not in training split"] == (3, 2 / 3)
    assert overlap.flags(TEXTS[3]) == {"exact_text_in_training_split": False, "masked_text_in_training_split": True}
    remark = overlap.remark(PROBLEMS)
    assert re.search("the model .* instead", remark)
    assert overlap.record(PROBLEMS)["known"] is False


def test_where_nothing_is_known_nothing_is_said():
    overlap = TrainingOverlap.of(object())
    assert list(overlap.reports(PROBLEMS, SCORES)) == ["all problems"]
    assert set(overlap.flags(TEXTS[0]).values()) == {None}
    assert "instead" not in overlap.remark(PROBLEMS)


def test_ancestors_that_are_not_known_are_named():
    overlap = TrainingOverlap(TRAINED | TrainingTexts(unknown=("bert", "teacher")))
    assert re.search("1 of .*4 problems.* bert and teacher ", overlap.remark(PROBLEMS))
