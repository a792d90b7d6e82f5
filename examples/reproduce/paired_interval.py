"""Confidence intervals for the difference of two arms."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from .metrics import METRICS
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
    pooled_columns = {column["name"] for column in result.columns if "part_of" in column}
    columns = []
    for column in result.shown_columns:
        if column.unit in ("%", "") and not column.optional and column.name not in pooled_columns:
            columns.append(column)

    arms_by_name = {arm.name: arm for arm in result.arms}
    comparisons = []
    for arm in result.arms:
        baselines = arm.compare_with or result.compare_with
        for name in baselines.split():
            baseline = arms_by_name[name]
            if baseline is arm:
                continue
            intervals = {}
            for column in columns:
                interval = paired_interval(arm, baseline, column)
                if interval is not None:
                    intervals[column.name] = interval
            if intervals:
                comparisons.append(Comparison(arm, baseline, intervals))
    return comparisons


def paired_interval(arm: ArmResult, other: ArmResult, column: Column) -> PairedInterval | None:
    """
    Subtract a baseline arm's figures from an arm's, paired by example or problem (mean over common seeds), or else by
    seed. Returns `None` for fewer than two pairs.
    """
    baseline_runs = {run.seed: run for run in other.runs if column.name in run.figures}
    runs = [run for run in arm.runs if column.name in run.figures and run.seed in baseline_runs]
    rows = [_rows(run, column) for run in runs]
    baseline_rows = [_rows(baseline_runs[run.seed], column) for run in runs]

    # If the rows differ or some are unknown, only the figures can be compared.
    row_sets = {(row_unit, labels) for row_unit, _, _, labels in rows + baseline_rows}
    over = "seeds"
    labels = ""
    num_pairs = len(runs)
    if len(row_sets) == 1:
        row_unit, labels = row_sets.pop()
    if labels:
        over = row_unit
        num_pairs = len(labels.split())
    if num_pairs < 2:
        return None

    if labels:
        factor, _ = UNITS[column.unit]
        figures = factor * (_mean_bootstrap(rows) - _mean_bootstrap(baseline_rows))
    else:
        differences = []
        for run in runs:
            baseline_run = baseline_runs[run.seed]
            differences.append(run.figures[column.name] - baseline_run.figures[column.name])
        figures = _bootstrap_mean(differences)
    low, high = np.percentile(figures[1:], [2.5, 97.5])
    return PairedInterval(float(figures[0]), float(low), float(high), num_pairs, over)


def _rows(run: ArmRun, column: Column) -> tuple[str, str, str, str]:
    """Return the kind of a figure's rows, its metric, predictions and labels; an outcome's label is 1."""
    if column.name in run.examples:
        examples = run.examples[column.name]
        return "examples", column.metric, examples["predictions"], examples["labels"]
    outcomes = run.outcomes.get(column.name, "")
    return "problems", "accuracy", " ".join(outcomes), " ".join("1" * len(outcomes))


def _mean_bootstrap(rows: list[tuple[str, str, str, str]]) -> np.ndarray:
    """Return the mean over the seeds of the figure for all rows, then for each bootstrap draw."""
    figures = [_bootstrap_metric(metric, predictions, labels) for _, metric, predictions, labels in rows]
    return np.mean(figures, axis=0)


def _bootstrap_mean(differences: list[float]) -> np.ndarray:
    """Return the mean difference of all seeds, then of each bootstrap draw."""
    values = np.array(differences)
    return _bootstrap(len(values), lambda drawn: values[drawn].mean())


@lru_cache(maxsize=1000)
def _bootstrap_metric(metric: str, predictions: str, labels: str) -> np.ndarray:
    """Return a figure for all rows, then for each bootstrap draw. All arms have the same draws and share the cache."""
    predicted = np.array(predictions.split(), dtype=float)
    true = np.array(labels.split(), dtype=float)
    compute = METRICS[metric]
    return _bootstrap(len(true), lambda drawn: compute(predicted[drawn], true[drawn]))


def _bootstrap(num_rows: int, figure: Callable[[np.ndarray], float]) -> np.ndarray:
    # With a fixed seed, the same results give the same text.
    random = np.random.default_rng(0)
    figures = [figure(np.arange(num_rows))]
    for _ in range(RESAMPLES // 500):
        for drawn in random.integers(num_rows, size=(500, num_rows)):
            figures.append(figure(drawn))
    return np.array(figures)
