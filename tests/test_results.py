"""The figures in README.md are those of the records in examples/results."""

import json
import re
from pathlib import Path

import pytest


ROOT = Path(__file__).parents[1]
EVALUATIONS = ROOT / "examples" / "results" / "compact_math23k" / "evaluations"
COLUMNS = {
    "teacher": "retrained_teacher",
    "student": "self_training",
    "first teacher": "teacher",
    "its student": "complete",
    "without pretraining": "student",
}
ROWS = {
    "1,000 test problems, beam 5": ("beam5", "all problems"),
    "1,000 test problems, greedy": ("greedy", "all problems"),
    "the 932 whose masked text is not in train, beam 5": ("beam5", "masked text not in train"),
    "Ape-clean, 2,500 problems, beam 5": ("ape_clean", "all problems"),
    "Ape-clean, the 1,548 listed ones, beam 5": ("ape_clean_listed", "all problems"),
}


def right(model, row):
    """How many problems of a row a model solves, and of how many."""
    search, group = ROWS[row]
    report = json.loads((EVALUATIONS / f"{model}-{search}.json").read_text("utf-8"))["test"]["reports"][group]
    return round(report["answer_accuracy"] * report["num_problems"]), report["num_problems"]


def read_table():
    """The cells of the table, a list of (heading, cell) for each row."""
    text = (ROOT / "README.md").read_text("utf-8")
    heading, lines = re.search(r"\| answers right, % \| search \| (.*) \|\n\|[-: |]+\|\n((?:\|.*\n)+)", text).groups()
    rows = [[cell.strip() for cell in line.strip("|").split(" | ")] for line in lines.splitlines()]
    return {f"{row[0]}, {row[1]}": list(zip(heading.split(" | "), row[2:], strict=True)) for row in rows}


def test_all_rows_are_there():
    assert read_table().keys() == ROWS.keys()


@pytest.mark.parametrize("row", ROWS)
def test_figures_are_those_of_the_records(row):
    cells = read_table()[row]
    for place, (heading, cell) in enumerate(cells):
        if heading == "kept":
            teacher, student = (right(COLUMNS[cells[place - back][0]], row)[0] for back in (2, 1))
            assert cell == f"{100 * student / teacher:.1f}"
        else:
            found, count = right(COLUMNS[heading], row)
            assert cell == f"{100 * found / count:.1f}", heading
