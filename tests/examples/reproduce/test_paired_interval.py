import numpy as np
import pytest

from hf_mwp.compress.metrics.glue import GLUE_FIGURES
from reproduce import paired_interval as module
from reproduce.paired_interval import paired_interval
from reproduce.table import Column
from reproduce.table_result import ArmResult, ArmRun


X = Column("x", "X")


def arm(**figures):
    return ArmResult("a", "a", runs=[ArmRun(int(seed[1:]), "done", {"x": value}) for seed, value in figures.items()])


def test_equal_differences_have_no_spread():
    interval = paired_interval(arm(s1=3.0, s2=5.0, s3=9.0), arm(s3=8.0, s1=2.0, s2=4.0), X)
    assert (interval.mean, interval.low, interval.high, interval.num_pairs) == (1.0, 1.0, 1.0, 3)


def test_pairs_are_seeds_that_both_have():
    interval = paired_interval(arm(s1=1.0, s2=2.0, s4=50.0), arm(s1=0.0, s2=3.0, s3=9.0), X)
    # Of two pairs a quarter of all draws has the one twice: the interval reaches from one difference to the other.
    assert (interval.mean, interval.low, interval.high, interval.num_pairs) == (0.0, -1.0, 1.0, 2)
    assert paired_interval(arm(s1=1.0), arm(s1=0.0), X) is None
    assert paired_interval(arm(s1=1.0, s2=1.0), arm(s1=0.0, s2=1.0), Column("y", "y")) is None


def test_many_pairs_come_near_the_normal_interval():
    differences = np.random.default_rng(1).normal(2.0, 1.0, 100)
    ours = arm(**{f"s{seed}": float(value) for seed, value in enumerate(differences)})
    interval = paired_interval(ours, arm(**{f"s{seed}": 0.0 for seed in range(100)}), X)
    half = 1.96 * differences.std() / 10
    assert interval.low == pytest.approx(differences.mean() - half, abs=0.05)
    assert interval.high == pytest.approx(differences.mean() + half, abs=0.05)


def test_problems_are_the_pairs_where_their_outcomes_are_known():
    def run(outcomes, seed=1):
        share = 100 * outcomes.count("1") / len(outcomes)
        return ArmRun(seed, "done", {"x": share}, outcomes={"x": outcomes})

    # Nine problems more of a hundred, none less: mean 9, standard error sqrt(.09 * .91 / 100) of a share.
    ours, theirs = (
        ArmResult("a", "a", runs=[run("1" * 59 + "0" * 41)]),
        ArmResult("b", "b", runs=[run("1" * 50 + "0" * 50)]),
    )
    interval = paired_interval(ours, theirs, X)
    assert (interval.mean, interval.num_pairs, interval.over) == (pytest.approx(9.0), 100, "problems")
    assert interval.low == pytest.approx(9 - 5.6, abs=0.7) and interval.high == pytest.approx(9 + 5.6, abs=0.7)
    # Of two seeds a problem's outcome is the mean.
    ours.runs.append(run("0" * 100, 2))
    theirs.runs.append(run("0" * 100, 2))
    assert paired_interval(ours, theirs, X).mean == pytest.approx(4.5)
    # Where one seed does not know them, its figures are compared.
    theirs.runs[1].outcomes = {}
    assert paired_interval(ours, theirs, X).over == "seeds"


@pytest.mark.parametrize("metric", sorted(GLUE_FIGURES))
def test_figures_that_are_no_shares_are_made_anew_of_the_same_rows(metric, monkeypatch):
    monkeypatch.setattr(module, "RESAMPLES", 500)
    random, count = np.random.default_rng(0), 20
    labels = random.integers(0, 2, count) if metric != "spearman" else random.normal(size=count).round(1)
    column = Column("x", "X", examples="x", metric=metric)

    def run(seed):
        predictions = np.where(random.random(count) < 0.4, random.permutation(labels), labels)
        texts = (" ".join(f"{number:.6g}" for number in numbers) for numbers in (predictions, labels))
        return ArmRun(
            seed, "done", {"x": 0.0}, examples={"x": dict(zip(("predictions", "labels"), texts, strict=True))}
        ), predictions

    ours, theirs = [run(seed) for seed in (1, 2)], [run(seed) for seed in (1, 2)]
    arms = [ArmResult("a", "a", runs=[each for each, _ in pairs]) for pairs in (ours, theirs)]
    interval = paired_interval(*arms, column)

    def difference(rows):
        of = [
            np.mean([naive(metric, found[rows].tolist(), labels[rows].tolist()) for _, found in pairs])
            for pairs in (ours, theirs)
        ]
        return 100 * (of[0] - of[1])

    draws = np.random.default_rng(0).integers(count, size=(500, count))
    expected = np.percentile([difference(rows) for rows in draws], [2.5, 97.5])
    assert interval.mean == pytest.approx(difference(np.arange(count)))
    assert (interval.low, interval.high) == pytest.approx(tuple(expected))
    assert (interval.num_pairs, interval.over) == (20, "examples")
    # Other examples cannot be paired.
    arms[1].runs[0].examples["x"]["labels"] = "1 0"
    assert paired_interval(*arms, column).over == "seeds"


def naive(metric, predictions, labels):
    """As in a textbook, row by row."""
    pairs = list(zip(predictions, labels, strict=True))
    both, found, true = pairs.count((1, 1)), predictions.count(1), labels.count(1)
    if metric == "accuracy":
        return sum(p == y for p, y in pairs) / len(pairs)
    if metric == "f1":
        return 2 * both / (found + true) if found + true else 0.0
    if metric == "matthews":
        spread = found * (len(pairs) - found) * true * (len(pairs) - true)
        return (both * len(pairs) - found * true) / spread**0.5 if spread else 0.0
    ranks = [
        np.array([sum(a < b for a in numbers) + (numbers.count(b) + 1) / 2 for b in numbers])
        for numbers in (predictions, labels)
    ]
    return np.corrcoef(*ranks)[0, 1]
