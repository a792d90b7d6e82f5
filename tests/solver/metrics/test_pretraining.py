import random
from itertools import combinations

import pytest

from hf_mwp.solver.metrics import pos_report
from hf_mwp.solver.metrics.pretraining import tagged_spans


def begins_word(labels, index):
    """Whether a word begins with the label at an index."""
    label = labels[index]
    if label is None:
        return False
    previous = labels[index - 1] if index else None
    return label[0] == "B" or previous is None or previous[2:] != label[2:]


def naive_spans(labels):
    """The words, found by looking at each pair of ends."""
    labels = [*labels, None]
    spans = []
    for start, end in combinations(range(len(labels)), 2):
        goes_on = not begins_word(labels, end) and labels[end] is not None
        has_ends = begins_word(labels, start) and not goes_on
        inner = range(start + 1, end)
        if has_ends and not any(labels[index] is None or begins_word(labels, index) for index in inner):
            spans.append((start, end, labels[start][2:]))
    return spans


def random_labels(rng, length):
    return [rng.choice([None, "B-n", "I-n", "B-v", "I-v"]) for _ in range(length)]


def test_words_of_labels():
    labels = ["B-n", "I-n", "B-n", None, "I-n", "I-v", "I-v", "B-v"]
    assert tagged_spans(labels) == [(0, 2, "n"), (2, 3, "n"), (4, 5, "n"), (5, 7, "v"), (7, 8, "v")]
    assert tagged_spans([]) == tagged_spans([None]) == []


def test_words_of_random_labels_equal_the_naive_ones():
    rng = random.Random(0)
    for _ in range(300):
        labels = random_labels(rng, rng.randint(0, 9))
        assert tagged_spans(labels) == naive_spans(labels)


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
    rng = random.Random(1)
    gold = [random_labels(rng, length) for length in (3, 8, 0, 20)]
    predicted = []
    num_right = 0
    num_predicted = 0
    num_words = 0
    for labels in gold:
        guesses = [rng.choice(["B-n", "I-n", "B-v", "I-v"]) for _ in labels]
        predicted.append(guesses)
        # Predictions for tokens without a label do not count.
        judged = [guess if label else None for guess, label in zip(guesses, labels, strict=True)]
        predicted_spans = set(naive_spans(judged))
        spans = set(naive_spans(labels))
        num_right += len(predicted_spans & spans)
        num_predicted += len(predicted_spans)
        num_words += len(spans)
    report = pos_report(predicted, gold)
    assert report["precision"] == num_right / num_predicted
    assert report["recall"] == num_right / num_words
    assert report["f1"] == pytest.approx(2 * num_right / (num_predicted + num_words))
    assert sum(counts["count"] for counts in report["tags"].values()) == report["num_words"] == num_words


def test_perfect_and_empty_predictions():
    gold = [["B-n", "I-n", None]]
    assert pos_report(gold, gold)["f1"] == 1.0
    empty = pos_report([[None]], [[None]])
    assert (empty["f1"], empty["accuracy"], empty["tags"]) == (0.0, 0.0, {})


@pytest.mark.parametrize("gold", [[["B-n", "B-n"]], []])
def test_other_tokens_are_refused(gold):
    with pytest.raises(ValueError):
        pos_report([["B-n"]], gold)
