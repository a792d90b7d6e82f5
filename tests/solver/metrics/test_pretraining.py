import pytest

from hf_mwp.solver.metrics import pos_report
from hf_mwp.solver.metrics.pretraining import tagged_spans


def test_words_of_labels():
    labels = ["B-n", "I-n", "B-n", None, "I-n", "I-v", "I-v", "B-v"]
    assert tagged_spans(labels) == [(0, 2, "n"), (2, 3, "n"), (4, 5, "n"), (5, 7, "v"), (7, 8, "v")]
    assert tagged_spans([]) == tagged_spans([None]) == []


def test_boundaries_and_tag_must_be_right():
    gold = [[None, "B-n", "I-n", "B-v", "B-m", None]]
    predicted = [["B-x", "B-n", "I-n", "B-n", "I-n", "B-x"]]
    report = pos_report(predicted, gold)
    # Predicted are two words, 1-3 and 3-5; true are three, of which 1-3 is found.
    assert (report["precision"], report["recall"], report["f1"]) == (1 / 2, 1 / 3, 2 / 5)
    assert (report["accuracy"], report["num_words"]) == (2 / 4, 3)
    assert list(report["tags"]) == ["m", "n", "v"]
    assert report["tags"]["n"] == {"precision": 1 / 2, "recall": 1.0, "f1": 2 / 3, "count": 1}
    assert report["tags"]["v"] == {"precision": 0.0, "recall": 0.0, "f1": 0.0, "count": 1}


def test_right_boundary_with_another_tag_is_wrong():
    report = pos_report([["B-v", "I-v"]], [["B-n", "I-n"]])
    assert report["f1"] == 0
    assert report["tags"]["v"]["count"] == 0


def test_metrics_are_means_over_words_not_texts():
    # Predictions for tokens without a label do not count.
    gold = [["B-n", None], ["B-n", "B-v", "B-m"]]
    predicted = [["B-n", "B-n"], ["B-v", "I-v", "B-m"]]
    report = pos_report(predicted, gold)
    assert (report["precision"], report["recall"]) == (2 / 3, 2 / 4)
    assert report["f1"] == pytest.approx(4 / 7)
    assert sum(counts["count"] for counts in report["tags"].values()) == report["num_words"] == 4


def test_perfect_and_empty_predictions():
    gold = [["B-n", "I-n", None]]
    assert pos_report(gold, gold)["f1"] == 1.0
    empty = pos_report([[None]], [[None]])
    assert (empty["f1"], empty["accuracy"], empty["tags"]) == (0.0, 0.0, {})


@pytest.mark.parametrize("gold", [[["B-n", "B-n"]], []])
def test_other_tokens_are_refused(gold):
    with pytest.raises(ValueError):
        pos_report([["B-n"]], gold)
