import re

from hf_mwp.runtime.problems import MathWordProblem
from hf_mwp.solver.data import TrainingTexts
from hf_mwp.solver.metrics import PredictionScore, TrainingOverlap


TEXTS = ["小明有4个苹果", "小明有5个苹果", "求面积1", "求周长1"]
PROBLEMS = [MathWordProblem(text, "x=1", "1") for text in TEXTS]
RIGHT = PredictionScore(True, True, True, None, "correct", "low")
WRONG = PredictionScore(False, False, False, None, "correct", "low")
TRAINED = TrainingTexts.from_texts(["小明有四个苹果。"], ["a.txt"])


def accuracies(overlap):
    """The number of problems and the accuracy of each group."""
    reports = overlap.reports(PROBLEMS, [RIGHT, RIGHT, WRONG, RIGHT])
    return {name: (report["num_problems"], report.get("answer_accuracy")) for name, report in reports.items()}


def test_known_and_new_problems_are_reported_separately():
    overlap = TrainingOverlap(TRAINED, part=["求周长2"])
    assert accuracies(overlap) == {
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


def test_groups_without_problems_are_reported():
    groups = accuracies(TrainingOverlap(TrainingTexts()))
    assert groups["exact text in training data"] == (0, None)
    assert groups["masked text not in training data"] == (4, 0.75)


def test_without_digests_the_training_split_is_compared():
    overlap = TrainingOverlap(None, part=["求周长2"])
    assert accuracies(overlap)["masked text not in training split"] == (3, 2 / 3)
    assert overlap.flags(TEXTS[3]) == {"exact_text_in_training_split": False, "masked_text_in_training_split": True}
    assert re.search("the model .* instead", overlap.remark(PROBLEMS))
    assert overlap.record(PROBLEMS)["known"] is False


def test_without_any_texts_nothing_is_compared():
    overlap = TrainingOverlap.of(object())
    assert list(accuracies(overlap)) == ["all problems"]
    assert set(overlap.flags(TEXTS[0]).values()) == {None}
    assert "instead" not in overlap.remark(PROBLEMS)


def test_ancestors_with_unknown_texts_are_named():
    overlap = TrainingOverlap(TRAINED | TrainingTexts(unknown=("bert", "teacher")))
    assert re.search("1 of .*4 problems.* bert and teacher ", overlap.remark(PROBLEMS))
