"""`hf-mwp card`: a model's folder as the Hub gets it, with a card made of the records of its runs."""

from __future__ import annotations

import os
from pathlib import Path

from ...store.runs.run_folder import RunFolder, check_output_folder
from ...usage_error import UsageError
from ..options import all_options, parse_command
from ..terminal.console import make_console


def run(argv: list[str]) -> int:
    """Writes the folder; see `hf-mwp card --help`."""
    (args,), _ = parse_command(
        "card",
        "Write the folder that the Hub gets: weights in half precision, configuration, processor, and a card made of "
        "the records of the runs.",
        argv,
    )
    check_output_folder(args.output_dir, for_model=True)
    from ...hub import make_model_folder

    notes = read_notes(args.notes)
    with RunFolder(args.output_dir, for_model=True) as folder:
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
