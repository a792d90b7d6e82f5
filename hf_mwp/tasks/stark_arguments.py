"""Options of `hf-mwp stark`."""

from __future__ import annotations

from dataclasses import dataclass

from ..building.model_sources import locate_solver
from ..options import option
from ..options.checks import check_at_least_one


# What ranks the units of a teacher; the command line makes objects of them.
SCORES = ("knowledgeable", "random")


@dataclass
class StarkArguments:
    """Whom students learn from, how its heads and neurons are ranked, and what is measured."""

    _argument_group_name = "sparse teachers"

    teacher: str | None = option(
        None,
        "Folder or Hub id of a trained solver, or with task a classifier (must be given).",
        common=True,
        locate=locate_solver,
    )
    scores: str = option(
        "knowledgeable",
        "What ranks the teacher's heads and neurons: knowledgeable (gradients, see expressiveness_weight), or random "
        "(STARK-RAND, by seed).",
        common=True,
        choices=SCORES,
    )
    score_split: str = option(
        "validation", "Part that heads and neurons are scored on.", choices=("validation", "test", "train")
    )
    test: bool = option(True, "Measure teacher and students on the test split at the end.")
    test_num_beams: int | None = option(None, "Beams for the test split; num_beams if not given.")
    overwrite: bool = option(
        False, "Replace the model in the folder; stages that are there are gone on from.", affects_result=False
    )

    def __post_init__(self):
        check_at_least_one(self, "test_num_beams")
        if self.teacher is None:
            raise ValueError("a `teacher` must be given: the folder or Hub id of a trained solver or classifier.")
