"""By what attention heads are ranked, from the names that options have."""

from __future__ import annotations

from typing import TYPE_CHECKING


if TYPE_CHECKING:
    from ...pruning import HeadImportance


def make_importance(name: str, alpha: float = 0.5, seed: int = 0) -> HeadImportance:
    """The score of a name; `alpha` is that of a combined one, `seed` that of a random one."""
    from ... import pruning

    made = {
        "combined": lambda: pruning.CombinedImportance(alpha),
        "norm": pruning.WeightNorm,
        "entropy": pruning.AttentionEntropy,
        "peak": pruning.AttentionPeak,
        "gradient": pruning.GateGradient,
        "random": lambda: pruning.RandomImportance(seed),
    }
    return made[name]()
