"""
Give equations to problems that have an answer and no equation (self-training): of the trees that a solver finds, the
most probable one whose value is the answer. Of those without an answer the surest get the solver's own
(--pseudo_label_fraction). labelled.jsonl is training data for --extra_train. With --task seq2seq the texts that a
sequence-to-sequence model generates become targets: sequence-level distillation, for students of any tokenizer.
"""

from pathlib import Path

from ...tasks.pseudo_labels import pseudo_label
from ..terminal.console import CommandConsole, make_table


def run(options: list, values: dict, console: CommandConsole) -> None:
    """Label problems and print how many got an equation."""
    (args,) = options
    path, fates = pseudo_label(args, values, console)
    from ...solving.label_problems import FATES
    from ...tasks.text_labels import TEXT_FATES

    meanings, items = (FATES, "problems") if args.task is None else (TEXT_FATES, "texts")
    rows = ((f"{fates[fate]:,}", fate, meaning) for fate, meaning in meanings.items())
    title = ", ".join(Path(source).name for source in args.problems)
    console.print(make_table(title, (items, "", "meaning"), rows, right=[items]))
    console.print(f"Labelled {items}: {path}")
