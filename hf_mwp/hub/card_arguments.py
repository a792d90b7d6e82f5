"""Options of `hf-mwp card`."""

from __future__ import annotations

from dataclasses import dataclass

from ..building.model_sources import locate_model
from ..options import option
from ..options.checks import check_given


@dataclass
class CardArguments:
    """Options of `hf-mwp card`."""

    model: str | None = option(
        None,
        "Folder or Hub id of a solver, classifier or sequence-to-sequence model (must be given).",
        locate=locate_model,
    )
    output_dir: str | None = option(
        None, "Folder for weights (half precision), processor and card (must be given).", affects_result=False
    )
    part: str = option(
        "solver",
        "What to write: the solver, or its encoder alone, a student, with its code and a processor.",
        choices=("solver", "encoder"),
    )
    model_id: str | None = option(None, "Name by which the card loads the model; the output folder if not given.")
    stages: list[str] | None = option(None, "Folders of the runs that made the model, in their order.")
    evaluations: list[str] | None = option(
        None, "Folders of `hf-mwp evaluate` for this model, or for the solver that was built on this encoder."
    )
    teacher_evaluations: list[str] | None = option(None, "The same for its teacher.")
    reranker: str | None = option(
        None, "Folder or Hub id of the re-ranker to write beside the solver; the one beside it if not given."
    )
    summary: str = option("", "First paragraph of the card.")
    notes: str = option("", "Last section of the card, or a Markdown file that holds it.")
    license: str | None = option(None, "Licence identifier of the weights.")
    overwrite: bool = option(False, "Replace the model that is in the folder.", affects_result=False)

    def __post_init__(self):
        check_given(self, "model", "output_dir")
        if wrong := [name for name in ("summary", "notes") if not isinstance(getattr(self, name), str)]:
            raise ValueError(f"`{wrong[0]}` needs a text, not {getattr(self, wrong[0])!r}: put it in quotes.")
