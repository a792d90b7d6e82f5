"""
Give equations to problems that have an answer and no equation (self-training): of the trees that a solver finds, the
most probable one whose value is the answer. Problems without an answer get the solver's own equation if it is among
the most certain (--pseudo_label_fraction). labelled.jsonl is training data for --extra_train. With --task seq2seq or
math_seq2seq the texts or equations that a sequence-to-sequence model generates become targets: sequence-level
distillation, for students of any tokenizer.
"""

from pathlib import Path

from ...solving.search_options import LabelArguments
from ...tasks.pseudo_labels import TEXT_FATES, pseudo_label
from ..terminal.console import CommandConsole, make_table


def run(console: CommandConsole, args: LabelArguments) -> None:
    """Label problems and print how many got an equation."""
    path, fates = pseudo_label(args, console)
    from ...solving.label_problems import FATES

    meanings, items = (FATES, "problems") if args.task is None else (TEXT_FATES, "texts")
    rows = ((f"{fates[fate]:,}", fate, meaning) for fate, meaning in meanings.items())
    title = ", ".join(Path(source).name for source in args.problems)
    console.print(make_table(title, (items, "", "meaning"), rows, right=[items]))
    console.print(f"Labelled {items}: {path}")
