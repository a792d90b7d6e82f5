"""How sure the difference of two arms is."""

from __future__ import annotations

from dataclasses import dataclass

from .arm_result import ArmResult


RESAMPLES = 10_000


@dataclass(frozen=True)
class PairedInterval:
    """
    A difference of two arms that were run with the same seeds, and the interval that holds 95 % of what it would be
    with other seeds: percentiles of a bootstrap over the pairs of seeds, not over problems.

    Args:
        mean (`float`): Mean of the differences, in the column's unit.
        low (`float`), high (`float`): The interval.
        num_seeds (`int`): Pairs of seeds.
    """

    mean: float
    low: float
    high: float
    num_seeds: int

    def __str__(self) -> str:
        told = f"{self.mean:+.2f}, 95 % interval {self.low:+.2f} to {self.high:+.2f}"
        return f"{told} ({self.num_seeds} pairs of seeds, bootstrap over seeds)"


def paired_interval(arm: ArmResult, other: ArmResult, column: str) -> PairedInterval | None:
    """An arm's figures in a column minus another one's, paired by seed; `None` with fewer than two pairs."""
    import numpy as np

    theirs = {run.seed: run.figures[column] for run in other.runs if column in run.figures}
    pairs = [
        run.figures[column] - theirs[run.seed] for run in arm.runs if column in run.figures and run.seed in theirs
    ]
    if len(pairs) < 2:
        return None
    # The same results give the same text.
    drawn = np.random.default_rng(0).choice(np.array(pairs), size=(RESAMPLES, len(pairs)))
    low, high = np.percentile(drawn.mean(axis=1), [2.5, 97.5])
    return PairedInterval(float(np.mean(pairs)), float(low), float(high), len(pairs))
