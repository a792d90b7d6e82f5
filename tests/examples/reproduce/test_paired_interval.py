import math

import numpy as np
import pytest

from reproduce.paired_interval import paired_interval
from reproduce.table import Column
from reproduce.table_result import ArmResult, ArmRun


X = Column("x", "X")


def arm_of(*runs):
    return ArmResult("a", "a", runs=list(runs))


def arm(**figures):
    return arm_of(*(ArmRun(int(seed[1:]), "done", {"x": value}) for seed, value in figures.items()))


def assert_interval(interval, mean, low, high, num_pairs):
    assert (interval.mean, interval.low, interval.high, interval.num_pairs) == (mean, low, high, num_pairs)


def test_equal_differences_have_no_spread():
    interval = paired_interval(arm(s1=3.0, s2=5.0, s3=9.0), arm(s3=8.0, s1=2.0, s2=4.0), X)
    assert_interval(interval, 1.0, 1.0, 1.0, 3)


def test_pairs_are_seeds_that_both_have():
    interval = paired_interval(arm(s1=1.0, s2=2.0, s4=50.0), arm(s1=0.0, s2=3.0, s3=9.0), X)
    # A quarter of the draws of two pairs have one of them twice, so the interval has both differences as its ends.
    assert_interval(interval, 0.0, -1.0, 1.0, 2)
    assert paired_interval(arm(s1=1.0), arm(s1=0.0), X) is None
    assert paired_interval(arm(s1=1.0, s2=1.0), arm(s1=0.0, s2=1.0), Column("y", "y")) is None


def test_many_pairs_come_near_the_normal_interval():
    differences = np.random.default_rng(1).normal(2.0, 1.0, 100)
    names = [f"s{seed}" for seed in range(100)]
    first = arm(**dict(zip(names, differences.tolist(), strict=True)))
    interval = paired_interval(first, arm(**dict.fromkeys(names, 0.0)), X)
    half = 1.96 * differences.std() / 10
    assert interval.low == pytest.approx(differences.mean() - half, abs=0.05)
    assert interval.high == pytest.approx(differences.mean() + half, abs=0.05)


def run_of(num_right, seed=1):
    outcomes = "1" * num_right + "0" * (100 - num_right)
    return ArmRun(seed, "done", {"x": num_right}, outcomes={"x": outcomes})


def test_pairs_are_problems_if_their_outcomes_are_recorded():
    # Nine problems more of a hundred, none less: mean 9, standard error sqrt(.09 * .91 / 100) of a share.
    first = arm_of(run_of(59))
    second = arm_of(run_of(50))
    interval = paired_interval(first, second, X)
    assert (interval.num_pairs, interval.over) == (100, "problems")
    assert interval.mean == pytest.approx(9.0)
    assert interval.low == pytest.approx(9 - 5.6, abs=0.7)
    assert interval.high == pytest.approx(9 + 5.6, abs=0.7)
    # The outcome of a problem is the mean of the seeds.
    for result in (first, second):
        result.runs.append(run_of(0, seed=2))
    assert paired_interval(first, second, X).mean == pytest.approx(4.5)
    second.runs[1].outcomes = {}
    assert paired_interval(first, second, X).over == "seeds"


def run_with_examples(num_right, seed=1):
    predictions = "1 " * num_right + "0 " * (100 - num_right)
    return ArmRun(seed, "done", {"x": 0.0}, examples={"x": {"predictions": predictions, "labels": "1 " * 100}})


def test_accuracy_of_examples_has_the_interval_of_their_outcomes():
    column = Column("x", "X", examples="x", metric="accuracy")
    interval = paired_interval(arm_of(run_with_examples(59)), arm_of(run_with_examples(50)), column)
    expected = paired_interval(arm_of(run_of(59)), arm_of(run_of(50)), X)
    assert (interval.low, interval.high) == pytest.approx((expected.low, expected.high))
    assert (interval.num_pairs, interval.over) == (100, "examples")


@pytest.mark.slow
def test_metrics_that_are_no_shares_are_computed_of_resampled_examples():
    # A recall of 50 and 59 % at a precision of 1 is an F1 of 2 / 3 and 118 / 159.
    first = arm_of(run_with_examples(59))
    second = arm_of(run_with_examples(50))
    column = Column("x", "X", examples="x", metric="f1")
    interval = paired_interval(first, second, column)
    assert interval.mean == pytest.approx(100 * (118 / 159 - 2 / 3))
    assert interval.low < interval.mean < interval.high
    # Other examples cannot be paired.
    for result in (first, second):
        result.runs.append(run_with_examples(50, seed=2))
    second.runs[1].examples["x"]["labels"] = "1 0"
    assert paired_interval(first, second, column).over == "seeds"


def run_with_losses(losses, seed=1):
    predictions = " ".join(map(str, losses))
    return ArmRun(seed, "done", {"x": 0.0}, examples={"x": {"predictions": predictions, "labels": "10 10 20 40"}})


def test_perplexity_is_per_token_of_the_drawn_texts():
    column = Column("x", "X", unit="", examples="x", metric="perplexity")
    first = arm_of(run_with_losses([20.0, 20.0, 40.0, 80.0]))
    second = arm_of(run_with_losses([10.0, 10.0, 20.0, 40.0]))
    interval = paired_interval(first, second, column)
    # Each text has a loss of 2 or 1 per token, whatever texts are drawn.
    difference = pytest.approx(math.e**2 - math.e)
    assert (interval.mean, interval.low, interval.high) == (difference, difference, difference)
    # The losses of 80 tokens add up to 100 and 80.
    third = arm_of(run_with_losses([30.0, 10.0, 20.0, 40.0]))
    assert paired_interval(third, second, column).mean == pytest.approx(math.exp(100 / 80) - math.e)
