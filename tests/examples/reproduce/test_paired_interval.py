import numpy as np
import pytest

from hf_mwp.compress.metrics.glue import GLUE_FIGURES
from reproduce import paired_interval as module
from reproduce.paired_interval import paired_interval
from reproduce.table import Column
from reproduce.table_result import ArmResult, ArmRun


X = Column("x", "X")


def arm(**figures):
    runs = [ArmRun(int(seed[1:]), "done", {"x": value}) for seed, value in figures.items()]
    return ArmResult("a", "a", runs=runs)


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
    first = ArmResult("a", "a", runs=[run_of(59)])
    second = ArmResult("b", "b", runs=[run_of(50)])
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


@pytest.mark.parametrize("metric", sorted(GLUE_FIGURES))
def test_metrics_that_are_no_shares_are_computed_of_resampled_examples(metric, monkeypatch):
    monkeypatch.setattr(module, "RESAMPLES", 500)
    rng = np.random.default_rng(0)
    size = 20
    labels = rng.normal(size=size).round(1) if metric == "spearman" else rng.integers(0, 2, size)
    predictions = []
    arms = []
    for name in ("a", "b"):
        runs = []
        for seed in (1, 2):
            row = np.where(rng.random(size) < 0.4, rng.permutation(labels), labels)
            predictions.append(row)
            examples = {"predictions": " ".join(map(str, row)), "labels": " ".join(map(str, labels))}
            runs.append(ArmRun(seed, "done", {"x": 0.0}, examples={"x": examples}))
        arms.append(ArmResult(name, name, runs=runs))
    column = Column("x", "X", examples="x", metric=metric)
    interval = paired_interval(*arms, column)

    def difference(rows):
        figures = [naive(metric, row[rows].tolist(), labels[rows].tolist()) for row in predictions]
        return 100 * (np.mean(figures[:2]) - np.mean(figures[2:]))

    draws = np.random.default_rng(0).integers(size, size=(500, size))
    low, high = np.percentile([difference(rows) for rows in draws], [2.5, 97.5])
    assert interval.mean == pytest.approx(difference(np.arange(size)))
    assert interval.low == pytest.approx(low)
    assert interval.high == pytest.approx(high)
    assert (interval.num_pairs, interval.over) == (20, "examples")
    # Other examples cannot be paired.
    arms[1].runs[0].examples["x"]["labels"] = "1 0"
    assert paired_interval(*arms, column).over == "seeds"


def naive(metric, predictions, labels):
    """The metric by its definition in textbooks."""
    pairs = list(zip(predictions, labels, strict=True))
    true_positives = pairs.count((1, 1))
    predicted = predictions.count(1)
    positives = labels.count(1)
    if metric == "accuracy":
        return sum(prediction == label for prediction, label in pairs) / len(pairs)
    if metric == "f1":
        return 2 * true_positives / (predicted + positives) if predicted + positives else 0.0
    if metric == "matthews":
        spread = predicted * (len(pairs) - predicted) * positives * (len(pairs) - positives)
        return (true_positives * len(pairs) - predicted * positives) / spread**0.5 if spread else 0.0
    return np.corrcoef(ranks_of(predictions), ranks_of(labels))[0, 1]


def ranks_of(numbers):
    """The mean ranks of numbers."""
    ranks = []
    for number in numbers:
        num_lower = sum(other < number for other in numbers)
        ranks.append(num_lower + (numbers.count(number) + 1) / 2)
    return ranks
