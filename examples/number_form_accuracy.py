"""
Print how many problems of datasets are solved with and without some forms of numbers, among those that they change:

    python examples/number_form_accuracy.py math23k:test ape210k:validation --data_dir DATA \\
        --model model_cards/mwp-student-3L-gts-math23k --forms "periods of a rate" "parts of an hour" units

The forms are those of the solver's reading of numbers (guide "Numbers in texts"); `units` is the conversion of
quantities to one unit.
"""

import argparse
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from unittest import mock

from hf_mwp.commands.terminal.console import make_console, make_table
from hf_mwp.runtime import RuntimeSolver, load_solver
from hf_mwp.runtime.numbers import masked_text
from hf_mwp.solver.data import problem_from_row
from hf_mwp.solver.data.sources import read_part
from hf_mwp.solver.metrics.matching import answers_match
from hf_mwp.solver.solving.reranker_beams import right_answer


UNITS = "units"
"""Name of the conversion of quantities to one unit."""

HEADINGS = ("problems", "changed", "right without", "right with", "lost")


@contextmanager
def without_forms(names: Sequence[str]) -> Iterator[None]:
    """Context manager in which the forms with these names are not read."""
    other_forms = {}
    for reading, forms in masked_text._FORMS.items():
        other_forms[reading] = tuple(form for form in forms if form.name not in names)
    with mock.patch.object(masked_text, "_FORMS", other_forms):
        if UNITS not in names:
            yield
            return
        with mock.patch.object(masked_text, "convert_units", lambda text, mentions, language: mentions):
            yield


def compare(solver: RuntimeSolver, rows: Sequence[dict], names: Sequence[str]) -> list[int]:
    """Return the numbers of problems and changed problems, of right answers without and with the forms, and of answers
    that are right only without them."""
    counts = [len(rows), 0, 0, 0, 0]
    for row in rows:
        target = right_answer(problem_from_row(row))
        with without_forms(names):
            before = solver.reader.problem(row["text"]).numbers
        if target is None or solver.reader.problem(row["text"]).numbers == before:
            continue
        with without_forms(names):
            was_right = is_right(solver, row["text"], target)
        now_right = is_right(solver, row["text"], target)
        changes = (1, was_right, now_right, was_right and not now_right)
        for index, change in enumerate(changes, start=1):
            counts[index] += change
    return counts


def is_right(solver: RuntimeSolver, text: str, target: object) -> bool:
    """Return whether a solver's answer to a text is right."""
    answer = solver(text)[0]["answer"]
    return answer is not None and answers_match(answer, target)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sources", nargs="+", help="Files, datasets, or datasets with a split (math23k:test).")
    parser.add_argument("--data_dir", type=Path, help="Folder of the datasets.")
    parser.add_argument("--model", required=True, help="Folder of the solver.")
    parser.add_argument("--forms", nargs="+", required=True, help=f"Names of forms, or {UNITS}.")
    args = parser.parse_args()
    solver = load_solver(args.model)
    present = {UNITS}
    for forms in masked_text._FORMS.values():
        present.update(form.name for form in forms)
    unknown = sorted(set(args.forms) - present)
    if unknown:
        raise ValueError(f"unknown forms: {', '.join(unknown)}. Choose from {', '.join(sorted(present))}")
    rows = []
    for source in args.sources:
        problems, _ = read_part(source, args.data_dir, "skip", solver.reader.language)
        counts = compare(solver, problems, args.forms)
        rows.append([source, *map(str, counts)])
    make_console().print(make_table(Path(args.model).name, ["", *HEADINGS], rows, right=HEADINGS))


if __name__ == "__main__":
    try:
        main()
    except (OSError, ValueError) as error:
        sys.exit(f"number_form_accuracy.py: {error}")
