"""
Print how many problems in forms that people write are solved, for each pattern, reading of numbers and solver:

    python examples/people_texts.py texts.jsonl --models model_cards/mwp-student-3L-gts-math23k

Each line of the file has `language`, `pattern`, `text`, `answer` and, if only the way in which the numbers are written
is difficult, `plain`, the same problem with plain numbers. `plain text` counts these problems as solved from `plain`.
"""

import argparse
import json
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from hf_mwp.commands.terminal.console import make_console, make_table
from hf_mwp.runtime import RuntimeSolver, load_solver
from hf_mwp.runtime.numbers.masked_text import DEFAULT_READING, NUMBER_READINGS
from hf_mwp.runtime.problems import MathWordProblem
from hf_mwp.solver.metrics.matching import answers_match


PLAIN_TEXT = "plain text"
SURE = 0.9
"""Plausibility from which a wrong answer is counted as a silent error."""


def read_problems(path: Path) -> list[dict[str, Any]]:
    """Return the problems of a file of JSON lines."""
    with path.open(encoding="utf-8") as file:
        return [json.loads(line) for line in file if line.strip()]


def has_right_answer(record: dict[str, Any], answer: str) -> bool:
    """Return whether the result of a solver is an annotated answer. A percentage that is asked for may be annotated as
    94, 94% or 0.94."""
    if record["answer"] is None:
        return False
    values = [record["answer"]]
    if "percent" in record:
        percentage = float(record["percent"].removesuffix("%"))
        values += [percentage, percentage / 100]
    return any(answers_match(value, answer) for value in values)


def solve(solver: RuntimeSolver, problem: dict[str, Any], column: str) -> tuple[bool, bool]:
    """Return whether the answer is right, and whether it is wrong with a plausibility of at least `SURE`."""
    text = problem["text"]
    reading = column
    if column == PLAIN_TEXT:
        text = problem.get("plain") or text
        reading = DEFAULT_READING
    source = MathWordProblem(text, language=problem["language"], number_reading=reading)
    record = solver(source)[0]
    is_right = has_right_answer(record, problem["answer"])
    is_sure = record.get("plausibility", record["score"]) >= SURE
    return is_right, is_sure and not is_right


def table_rows(solver: RuntimeSolver, problems: Iterable[dict[str, Any]], columns: list[str]) -> list[list[str]]:
    """Return the rows of the table of a solver: pattern, number of problems, and right answers of each column."""
    counts: dict[str, list[int]] = {}
    total = [0] * (len(columns) + 1)
    wrong = [0] * (len(columns) + 1)
    for problem in problems:
        pattern = counts.setdefault(problem["pattern"], [0] * (len(columns) + 1))
        pattern[0] += 1
        total[0] += 1
        for index, column in enumerate(columns, start=1):
            is_right, is_silent = solve(solver, problem, column)
            pattern[index] += is_right
            total[index] += is_right
            wrong[index] += is_silent
    rows = []
    for name, pattern in sorted(counts.items()):
        rows.append([name, *map(str, pattern)])
    rows.append(["all", *map(str, total)])
    rows.append([f"wrong, plausibility of at least {SURE}", "", *map(str, wrong[1:])])
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", type=Path, help="File of problems, JSON lines.")
    parser.add_argument("--models", nargs="+", required=True, help="Folders of solvers.")
    parser.add_argument(
        "--readings",
        nargs="+",
        default=["original", DEFAULT_READING],
        choices=NUMBER_READINGS,
        help="Readings of numbers.",
    )
    args = parser.parse_args()
    problems = read_problems(args.file)
    columns = [*args.readings, PLAIN_TEXT]
    for name in args.models:
        solver = load_solver(name)
        solvable = [problem for problem in problems if problem["language"] == solver.reader.language]
        headings = ["problems", *columns]
        rows = table_rows(solver, solvable, columns)
        make_console().print(make_table(Path(name).name, ["", *headings], rows, right=headings))


if __name__ == "__main__":
    try:
        main()
    except (OSError, ValueError) as error:
        sys.exit(f"people_texts.py: {error}")
