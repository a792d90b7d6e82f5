import random

import pytest

from hf_mwp.solver.metrics import pos_report
from hf_mwp.solver.metrics.pretraining import tagged_spans


def slow_spans(labels):
    """The same words, found by looking at each pair of ends."""
    spans = []
    for start in range(len(labels)):
        for end in range(start + 1, len(labels) + 1):
            part = labels[start:end]
            if None in part or len({label[2:] for label in part}) > 1:
                continue
            before = labels[start - 1] if start else None
            starts = part[0][0] == "B" or before is None or before[2:] != part[0][2:]
            following = labels[end] if end < len(labels) else None
            goes_on = following is not None and following[0] == "I" and following[2:] == part[0][2:]
            if starts and all(label[0] == "I" for label in part[1:]) and not goes_on:
                spans.append((start, end, part[0][2:]))
    return spans


def random_labels(chooser, length):
    return [chooser.choice([None, "B-n", "I-n", "B-v", "I-v"]) for _ in range(length)]


def test_words_of_labels():
    labels = ["B-n", "I-n", "B-n", None, "I-n", "I-v", "I-v", "B-v"]
    assert tagged_spans(labels) == [(0, 2, "n"), (2, 3, "n"), (4, 5, "n"), (5, 7, "v"), (7, 8, "v")]
    assert tagged_spans([]) == tagged_spans([None]) == []


def test_words_of_random_labels_are_those_of_the_slow_way():
    chooser = random.Random(0)
    for _ in range(300):
        labels = random_labels(chooser, chooser.randint(0, 9))
        assert tagged_spans(labels) == slow_spans(labels)


def test_boundaries_and_tag_must_be_right():
    gold = [[None, "B-n", "I-n", "B-v", "B-m", None]]
    predicted = [["B-x", "B-n", "I-n", "B-n", "I-n", "B-x"]]
    report = pos_report(predicted, gold)
    # Predicted are two words, 1-3 and 3-5; true are three, of which 1-3 is found.
    assert report["precision"] == 1 / 2 and report["recall"] == 1 / 3 and report["f1"] == 2 / 5
    assert report["accuracy"] == 2 / 4 and report["num_words"] == 3
    assert list(report["tags"]) == ["m", "n", "v"]
    assert report["tags"]["n"] == {"precision": 1 / 2, "recall": 1.0, "f1": 2 / 3, "count": 1}
    assert report["tags"]["v"] == {"precision": 0.0, "recall": 0.0, "f1": 0.0, "count": 1}


def test_a_right_boundary_with_another_tag_is_wrong():
    report = pos_report([["B-v", "I-v"]], [["B-n", "I-n"]])
    assert report["f1"] == 0 and report["tags"]["v"]["count"] == 0


def test_micro_average_is_over_words_not_texts():
    chooser = random.Random(1)
    gold = [random_labels(chooser, length) for length in (3, 8, 0, 20)]
    predicted = [[chooser.choice(["B-n", "I-n", "B-v", "I-v"]) for _ in labels] for labels in gold]
    pairs = list(zip(predicted, gold, strict=True))
    masked = [[p if g else None for p, g in zip(ours, theirs, strict=True)] for ours, theirs in pairs]
    right = sum(len(set(slow_spans(p)) & set(slow_spans(g))) for p, g in zip(masked, gold, strict=True))
    found, true = (sum(len(slow_spans(labels)) for labels in texts) for texts in (masked, gold))
    report = pos_report(predicted, gold)
    assert report["precision"] == right / found and report["recall"] == right / true
    assert report["f1"] == pytest.approx(2 * right / (found + true))
    assert sum(figures["count"] for figures in report["tags"].values()) == report["num_words"] == true


def test_everything_right_and_nothing_there():
    gold = [["B-n", "I-n", None]]
    assert pos_report(gold, gold)["f1"] == 1.0
    empty = pos_report([[None]], [[None]])
    assert (empty["f1"], empty["accuracy"], empty["tags"]) == (0.0, 0.0, {})


def test_other_tokens_are_an_error():
    with pytest.raises(ValueError):
        pos_report([["B-n"]], [["B-n", "B-n"]])
    with pytest.raises(ValueError):
        pos_report([["B-n"]], [])
