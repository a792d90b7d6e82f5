import math
from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hf_mwp.solver.metrics import calibration_report


def naive_error(answers, num_bins):
    """The expected calibration error of pairs of a probability and whether the answer is right."""
    total = 0.0
    for index in range(num_bins):
        low = index / num_bins
        high = (index + 1) / num_bins
        inside = [answer for answer in answers if low < answer[0] <= high or (index == 0 and answer[0] == 0)]
        total += abs(sum(probability - is_right for probability, is_right in inside)) / len(answers)
    return total


def naive_auroc(answers):
    right = [probability for probability, is_right in answers if is_right]
    wrong = [probability for probability, is_right in answers if not is_right]
    if not right or not wrong:
        return None
    num_ordered = 0
    for first, second in product(right, wrong):
        num_ordered += (first > second) + (first >= second)
    return num_ordered / 2 / len(right) / len(wrong)


def naive_surer_half(answers):
    """The accuracy of the surer half; of answers as probable as the last of it, their mean counts."""
    half = math.ceil(len(answers) / 2)
    border = sorted(probability for probability, _ in answers)[-half]
    surer = [is_right for probability, is_right in answers if probability > border]
    tied = [is_right for probability, is_right in answers if probability == border]
    return (sum(surer) + sum(tied) / len(tied) * (half - len(surer))) / half


def test_worked_out_by_hand():
    # Two bins: 0.2 and 0.4 with one of two right, 0.6, 0.9 and 0.9 with two of three right.
    report = calibration_report([0.9, 0.2, 0.6, 0.4, 0.9], [True, False, False, True, True], num_bins=2)
    # 2/5 * |0.3 - 0.5| + 3/5 * |0.8 - 2/3| = 0.08 + 0.08
    assert report["expected_calibration_error"] == pytest.approx(0.16)
    # Right 0.9, 0.4, 0.9 against wrong 0.2, 0.6: 2 + 1 + 2 of 6 pairs.
    assert report["auroc"] == pytest.approx(5 / 6)
    # The three surest are 0.9, 0.9, 0.6.
    assert report["num_surer_half"] == 3
    assert report["surer_half_accuracy"] == pytest.approx(2 / 3)
    assert (report["num_problems"], report["num_bins"]) == (5, 2)
    low, high = report["bins"]
    assert (low["from"], low["to"], low["num_problems"], low["answer_accuracy"]) == (0.0, 0.5, 2, 0.5)
    assert low["probability"] == pytest.approx(0.3)
    assert (high["from"], high["to"], high["num_problems"]) == (0.5, 1.0, 3)


def test_bins_include_their_upper_bound():
    report = calibration_report([0.0, 0.5, 1.0], [False, False, True], num_bins=2)
    assert [row["num_problems"] for row in report["bins"]] == [2, 1]


@pytest.mark.parametrize(("is_right", "error"), [(True, 0.25), (False, 0.75)])
def test_single_answer(is_right, error):
    report = calibration_report([0.75], [is_right])
    assert report["auroc"] is None
    assert report["surer_half_accuracy"] == float(is_right)
    assert report["expected_calibration_error"] == error


@settings(max_examples=30, deadline=None)
@given(
    st.lists(st.tuples(st.floats(0, 1) | st.sampled_from([0, 1 / 15, 0.2, 1 / 3, 1]), st.booleans()), min_size=1),
    st.integers(1, 20),
)
def test_report_equals_the_naive_one(answers, num_bins):
    probabilities, correct = map(list, zip(*answers, strict=True))
    report = calibration_report(probabilities, correct, num_bins)
    assert report["expected_calibration_error"] == pytest.approx(naive_error(answers, num_bins))
    assert report["auroc"] == pytest.approx(naive_auroc(answers))
    assert report["surer_half_accuracy"] == pytest.approx(naive_surer_half(answers))
    assert sum(row["num_problems"] for row in report["bins"]) == len(answers)


@pytest.mark.parametrize(
    ("probabilities", "correct", "message"), [([], [], "probabilit"), ([0.5], [True, False], "2 .* 1 probabilit")]
)
def test_wrong_use_is_named(probabilities, correct, message):
    with pytest.raises(ValueError, match=message):
        calibration_report(probabilities, correct)
