import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hf_mwp.solver.metrics import calibration_report


def obvious_error(probabilities, correct, num_bins):
    total = 0.0
    for k in range(num_bins):
        low, high = k / num_bins, (k + 1) / num_bins
        inside = [i for i, p in enumerate(probabilities) if low < p <= high or (k == 0 and p == 0)]
        if inside:
            sure = sum(probabilities[i] for i in inside) / len(inside)
            right = sum(correct[i] for i in inside) / len(inside)
            total += len(inside) / len(probabilities) * abs(sure - right)
    return total


def obvious_auroc(probabilities, correct):
    pairs = [
        (p, q)
        for p, right in zip(probabilities, correct, strict=True)
        if right
        for q, other in zip(probabilities, correct, strict=True)
        if not other
    ]
    return sum(1.0 if p > q else 0.5 if p == q else 0.0 for p, q in pairs) / len(pairs) if pairs else None


def obvious_surer_half(probabilities, correct):
    """Ties at the border: the mean over putting each of the tied answers first."""
    half = math.ceil(len(probabilities) / 2)
    border = sorted(probabilities, reverse=True)[half - 1]
    surer = [right for p, right in zip(probabilities, correct, strict=True) if p > border]
    tied = [right for p, right in zip(probabilities, correct, strict=True) if p == border]
    turns = [tied[turn:] + tied[:turn] for turn in range(len(tied))]
    return sum(sum(surer) + sum(turn[: half - len(surer)]) for turn in turns) / len(turns) / half


def test_by_hand():
    # Two bins: 0.2 and 0.4 with one of two right, 0.6, 0.9 and 0.9 with two of three right.
    report = calibration_report([0.9, 0.2, 0.6, 0.4, 0.9], [True, False, False, True, True], num_bins=2)
    # 2/5 * |0.3 - 0.5| + 3/5 * |0.8 - 2/3| = 0.08 + 0.08
    assert report["expected_calibration_error"] == pytest.approx(0.16)
    # Right 0.9, 0.4, 0.9 against wrong 0.2, 0.6: 2 + 1 + 2 of 6 pairs.
    assert report["auroc"] == pytest.approx(5 / 6)
    # The three surest are 0.9, 0.9, 0.6.
    assert (report["num_surer_half"], report["surer_half_accuracy"]) == (3, pytest.approx(2 / 3))
    assert (report["num_problems"], report["num_bins"]) == (5, 2)
    low, high = report["bins"]
    assert (low["from"], low["to"], low["num_problems"], low["answer_accuracy"]) == (0.0, 0.5, 2, 0.5)
    assert low["probability"] == pytest.approx(0.3)
    assert (high["from"], high["to"], high["num_problems"]) == (0.5, 1.0, 3)


def test_bins_are_closed_above():
    report = calibration_report([0.0, 0.5, 1.0], [False, False, True], num_bins=2)
    assert [each["num_problems"] for each in report["bins"]] == [2, 1]


def test_equal_probabilities_say_nothing():
    report = calibration_report([0.5] * 4, [True, False, False, False])
    assert (report["auroc"], report["surer_half_accuracy"]) == (0.5, 0.25)
    assert report["expected_calibration_error"] == pytest.approx(0.25)
    assert [each["num_problems"] for each in report["bins"]] == [4]


@pytest.mark.parametrize("right", [True, False])
def test_one_answer(right):
    report = calibration_report([0.75], [right])
    assert (report["auroc"], report["surer_half_accuracy"]) == (None, float(right))
    assert report["expected_calibration_error"] == 0.25 if right else 0.75


@settings(deadline=None)
@given(
    st.lists(st.tuples(st.floats(0, 1) | st.sampled_from([0, 1 / 15, 0.2, 1 / 3, 1]), st.booleans()), min_size=1),
    st.integers(1, 20),
)
def test_as_the_obvious_ones(answers, num_bins):
    probabilities, correct = (list(each) for each in zip(*answers, strict=True))
    report = calibration_report(probabilities, correct, num_bins)
    assert report["expected_calibration_error"] == pytest.approx(obvious_error(probabilities, correct, num_bins))
    expected = obvious_auroc(probabilities, correct)
    assert report["auroc"] is None if expected is None else report["auroc"] == pytest.approx(expected)
    assert report["surer_half_accuracy"] == pytest.approx(obvious_surer_half(probabilities, correct))
    assert sum(each["num_problems"] for each in report["bins"]) == len(answers)


@pytest.mark.parametrize(
    ("probabilities", "correct", "num_bins", "message"),
    [
        ([], [], 15, "probabilit"),
        ([0.5], [True, False], 15, "2 .* 1 probabilit"),
    ],
)
def test_wrong_use_is_named(probabilities, correct, num_bins, message):
    with pytest.raises(ValueError, match=message):
        calibration_report(probabilities, correct, num_bins)
