"""How sure the difference of two arms is."""

from __future__ import annotations

from dataclasses import dataclass

from ..grid.column import UNITS, Column
from .arm_result import ArmResult


RESAMPLES = 10_000


@dataclass(frozen=True)
class PairedInterval:
    """
    A difference of two arms, and the interval that holds 95 % of what it would be with other problems or, where it is
    not known what became of each problem, with other seeds: percentiles of a bootstrap over the pairs.

    Args:
        mean (`float`): Mean of the differences, in the column's unit.
        low (`float`), high (`float`): The interval.
        num_pairs (`int`), over (`str`): Pairs, and what they are of: `"problems"` or `"seeds"`.
    """

    mean: float
    low: float
    high: float
    num_pairs: int
    over: str

    def __str__(self) -> str:
        told = f"{self.mean:+.2f}, 95 % interval {self.low:+.2f} to {self.high:+.2f}"
        return f"{told} ({self.num_pairs:,} pairs of {self.over}, bootstrap over {self.over})"


def paired_interval(arm: ArmResult, other: ArmResult, column: Column) -> PairedInterval | None:
    """
    An arm's figures minus another one's, paired by problem (the mean over seeds that both have) or else by seed;
    `None` with fewer than two pairs.

    Args:
        arm ([`ArmResult`]), other ([`ArmResult`]): The arms.
        column ([`Column`]): The column.
    """
    import numpy as np

    theirs = {run.seed: run for run in other.runs if column.name in run.figures}
    pairs = [(run, theirs[run.seed]) for run in arm.runs if column.name in run.figures and run.seed in theirs]
    known = [[run.outcomes.get(column.name, "") for run in pair] for pair in pairs]
    # Not the same problems, or in part not known: only their figures can be compared.
    lengths = {len(outcomes) for pair in known for outcomes in pair}
    over = "problems" if len(lengths) == 1 and lengths != {0} else "seeds"
    if over == "problems":
        ours, others = (np.array([[*map(int, pair[at])] for pair in known]).mean(axis=0) for at in (0, 1))
        differences = UNITS[column.unit][0] * (ours - others)
    else:
        differences = np.array([ours.figures[column.name] - others.figures[column.name] for ours, others in pairs])
    if len(differences) < 2:
        return None
    # The same results give the same text.
    random = np.random.default_rng(0)
    means = [random.choice(differences, size=(500, len(differences))).mean(axis=1) for _ in range(RESAMPLES // 500)]
    low, high = np.percentile(np.concatenate(means), [2.5, 97.5])
    return PairedInterval(float(differences.mean()), float(low), float(high), len(differences), over)
