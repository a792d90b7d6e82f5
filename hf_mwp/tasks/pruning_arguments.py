"""Options of `hf-mwp prune`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ..building.model_sources import locate_solver
from ..options import option
from ..options.checks import check_at_least_one


if TYPE_CHECKING:
    from ..pruning import HeadImportance


# What ranks attention heads; the command line makes classes of them.
IMPORTANCES = ("combined", "norm", "entropy", "peak", "gradient", "random")
IMPORTANCE_HELP = (
    "What ranks heads: combined (norm and entropy, by alpha), norm of their weights, entropy or peak of their "
    "attention, gradient of the loss by their gate, or random."
)


@dataclass
class PruneArguments:
    """What is pruned, and where it goes."""

    _argument_group_name = "pruning"

    model: str | None = option(
        None,
        "Folder or Hub id of a trained solver (must be given).",
        common=True,
        locate=locate_solver,
    )
    importance: str = option("combined", IMPORTANCE_HELP, common=True, choices=IMPORTANCES)
    generations_dir: str | None = option(
        None,
        "Folder of the generations, which runs may share; generations in output_dir if not given.",
        affects_result=False,
    )
    test: bool = option(True, "Solve the test split with each generation.")
    test_num_beams: int | None = option(None, "Beams for the test split; num_beams if not given.")
    overwrite: bool = option(
        False, "Replace the model in the folder; generations that are there are gone on from.", affects_result=False
    )

    def __post_init__(self):
        check_at_least_one(self, "test_num_beams")
        if self.model is None:
            raise ValueError("a `model` must be given: the folder or Hub id of a trained solver.")


def make_importance(name: str, alpha: float = 0.5, seed: int = 0) -> HeadImportance:
    """
    Return a score of attention heads by its name.

    Args:
        name (`str`): One of `IMPORTANCES`.
        alpha (`float`, *optional*, defaults to 0.5): Weight of the norm in the combined score.
        seed (`int`, *optional*, defaults to 0): Seed of the random score.
    """
    from .. import pruning

    made = {
        "combined": lambda: pruning.CombinedImportance(alpha),
        "norm": pruning.WeightNorm,
        "entropy": pruning.AttentionEntropy,
        "peak": pruning.AttentionPeak,
        "gradient": pruning.GateGradient,
        "random": lambda: pruning.RandomImportance(seed),
    }
    return made[name]()
