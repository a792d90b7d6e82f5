"""Options that say by what attention heads are ranked."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...option_roles import Role, option


if TYPE_CHECKING:
    from ...pruning import HeadImportance

IMPORTANCES = ("combined", "norm", "entropy", "peak", "gradient", "random")
IMPORTANCE_HELP = (
    "What ranks heads: combined (norm and entropy, by alpha), norm of their weights, entropy or peak of their "
    "attention, gradient of the loss by their gate, or random."
)


def importance_option(default: str = "combined"):
    """The field of it."""
    return option(default, IMPORTANCE_HELP, Role.COMMON, IMPORTANCES)


def make_importance(name: str, alpha: float = 0.5, seed: int = 0) -> HeadImportance:
    """The score of a name; `alpha` is that of a combined one, `seed` that of a random one."""
    from ... import pruning

    if name == "combined":
        return pruning.CombinedImportance(alpha)
    if name == "random":
        return pruning.RandomImportance(seed)
    kinds = {
        "norm": pruning.WeightNorm,
        "entropy": pruning.AttentionEntropy,
        "peak": pruning.AttentionPeak,
        "gradient": pruning.GateGradient,
    }
    return kinds[name]()
