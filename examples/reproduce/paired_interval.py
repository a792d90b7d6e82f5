"""Confidence intervals for the difference of two arms."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from hf_mwp.compress.metrics.glue import GLUE_FIGURES

from .table import UNITS, Column
from .table_result import ArmResult, ArmRun, TableResult


RESAMPLES = 2_000


@dataclass(frozen=True)
class PairedInterval:
    """
    The difference of two arms and its 95 % interval, in the column's unit: percentiles of a bootstrap over examples or
    problems, with the same rows drawn for both arms, or over seeds if the outcomes of single rows are unknown.
    """

    mean: float  # of the differences
    low: float
    high: float
    num_pairs: int
    over: str  # kind of the pairs: "examples", "problems" or "seeds"

    @property
    def excludes_zero(self) -> bool:
        """Return whether both ends of the interval have the same sign."""
        return self.low > 0 or self.high < 0

    def __str__(self) -> str:
        return f"{self.mean:+.2f} ({self.low:+.2f} to {self.high:+.2f})"


@dataclass(frozen=True)
class Comparison:
    """An arm, the arm it is compared with, and the interval of their difference for each column that has one."""

    arm: ArmResult
    other: ArmResult
    intervals: dict[str, PairedInterval]


def compare_arms(result: TableResult) -> list[Comparison]:
    """Compare the metrics of each arm with its baselines; pairs of arms without common figures are left out."""
    # Pooled folds are compared as a whole.
    parts = {each["name"] for each in result.columns if "part_of" in each}
    columns = [
        each
        for each in result.shown_columns
        if each.unit in ("%", "") and not each.optional and each.name not in parts
    ]
    by_name, comparisons = {arm.name: arm for arm in result.arms}, []
    for arm in result.arms:
        baselines = [by_name[name] for name in (arm.compare_with or result.compare_with).split() if name != arm.name]
        for other in baselines:
            found = {column.name: paired_interval(arm, other, column) for column in columns}
            intervals = {column: interval for column, interval in found.items() if interval is not None}
            if intervals:
                comparisons.append(Comparison(arm, other, intervals))
    return comparisons


def paired_interval(arm: ArmResult, other: ArmResult, column: Column) -> PairedInterval | None:
    """
    Subtract a baseline arm's figures from an arm's, paired by example or problem (mean over common seeds), or else by
    seed. Returns `None` for fewer than two pairs.
    """
    theirs = {run.seed: run for run in other.runs if column.name in run.figures}
    pairs = [(run, theirs[run.seed]) for run in arm.runs if column.name in run.figures and run.seed in theirs]
    rows = [[_rows(run, column) for run in pair] for pair in pairs]
    # If the rows differ or some are unknown, only the figures can be compared.
    kinds = {(over, labels) for pair in rows for over, _, _, labels in pair}
    over, labels = kinds.pop() if len(kinds) == 1 else ("", "")
    if labels:
        ours, others = (np.mean([_drawn(*pair[at][1:]) for pair in rows], axis=0) for at in (0, 1))
        count, drawn = len(labels.split()), UNITS[column.unit][0] * (ours - others)
    else:
        differences = np.array([ours.figures[column.name] - others.figures[column.name] for ours, others in pairs])
        over, count = "seeds", len(pairs)
        drawn = _draw(count, lambda chosen: differences[chosen].mean()) if pairs else differences
    if count < 2:
        return None
    low, high = np.percentile(drawn[1:], [2.5, 97.5])
    return PairedInterval(float(drawn[0]), float(low), float(high), count, over)


def _rows(run: ArmRun, column: Column) -> tuple[str, str, str, str]:
    """Return the kind of a figure's rows, its metric, predictions and labels; an outcome's label is 1."""
    if column.name in run.examples:
        examples = run.examples[column.name]
        return "examples", column.metric, examples["predictions"], examples["labels"]
    outcomes = run.outcomes.get(column.name, "")
    return "problems", "accuracy", " ".join(outcomes), " ".join("1" * len(outcomes))


@lru_cache(maxsize=1000)
def _drawn(metric: str, predictions: str, labels: str) -> np.ndarray:
    """Return a figure for all rows, then for each bootstrap draw. All arms have the same draws and share the cache."""
    found, true = (np.array(numbers.split(), dtype=float) for numbers in (predictions, labels))
    return _draw(len(true), lambda chosen: GLUE_FIGURES[metric](found[chosen], true[chosen]))


def _draw(count: int, figure: Callable[[np.ndarray], float]) -> np.ndarray:
    # With a fixed seed, the same results give the same text.
    random = np.random.default_rng(0)
    draws = (rows for _ in range(RESAMPLES // 500) for rows in random.integers(count, size=(500, count)))
    return np.array([figure(np.arange(count)), *map(figure, draws)])
