"""`hf-mwp card`: a model's folder as the Hub gets it, with a card made of the records of its runs."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from ...option_roles import Role, option
from ...runs.run_folder import RunFolder, check_output_folder
from ...usage_error import UsageError
from ..options.command_options import all_options
from ..options.parsing import parse
from ..terminal.console import make_console


@dataclass
class CardArguments:
    """Options of `hf-mwp card`."""

    model: str | None = option(None, "Folder or Hub id of a solver (must be given).", Role.SOLVER)
    output_dir: str | None = option(
        None, "Folder for weights (half precision), processor and card (must be given).", Role.PLACE
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
    overwrite: bool = option(False, "Replace the model that is in the folder.", Role.LAUNCH)

    def __post_init__(self):
        for name in ("model", "output_dir"):
            if getattr(self, name) is None:
                raise ValueError(f"`{name}` must be given.")
        for name in ("summary", "notes"):
            value = getattr(self, name)
            if not isinstance(value, str):
                raise ValueError(f"`{name}` needs a text, not {value!r}: put it in quotes.")


def argument_types() -> list[type]:
    """Dataclasses whose fields are the options."""
    return [CardArguments]


def run(argv: list[str]) -> int:
    """Writes the folder; see `hf-mwp card --help`."""
    (args,), _ = parse(
        "card",
        "Write the folder that the Hub gets: weights in half precision, configuration, processor, and a card made of "
        "the records of the runs.",
        argument_types(),
        argv,
    )
    check_output_folder(args.output_dir)
    from ...hub import make_model_folder

    notes = read_notes(args.notes)
    with RunFolder(args.output_dir) as folder:
        folder.check_unused(args.overwrite)
        make_model_folder(
            args.model,
            args.output_dir,
            encoder_only=args.part == "encoder",
            model_id=args.model_id,
            stages=args.stages or (),
            evaluations=args.evaluations or (),
            teacher_evaluations=args.teacher_evaluations or (),
            reranker=args.reranker,
            license=args.license,
            summary=args.summary,
            notes=notes,
            commands=all_options(),
        )
    make_console().print(f"{args.output_dir} has weights, configuration, processor and README.md.")
    return 0


def read_notes(notes: str) -> str:
    """The text, or that of the file which it names; `UsageError` if it can only be a file and there is none."""
    if not notes.endswith(".md"):
        return notes
    if os.path.isfile(notes):
        return Path(notes).read_text(encoding="utf-8")
    if len(notes.split()) == 1:
        raise UsageError(f"--notes: there is no file {notes}.")
    return notes
