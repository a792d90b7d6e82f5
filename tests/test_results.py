"""The figures in README.md are those of the records in examples/results."""

import json
import re
from pathlib import Path

import pytest


ROOT = Path(__file__).parents[1]
EVALUATIONS = ROOT / "examples" / "results" / "compact_math23k" / "evaluations"
DATA_SETS = {"Math23k, test": "", "Ape-clean, test": "ape_clean-", "Ape-clean, listed": "ape_clean_listed-"}
GROUPS = {
    "all": "all problems",
    "masked text not in training data": "masked text not in training data",
    "exact text not in training data": "exact text not in training data",
}
SEARCHES = {"greedy": "greedy", "beam 5": "beam5", "beam 20, re-ranked": "reranked"}
ROWS = [(data, group) for data in DATA_SETS for group in GROUPS]


def read_table():
    """The cells of the table of results by data set and group, and by column."""
    text = (ROOT / "README.md").read_text("utf-8")
    heading, lines = re.search(
        r"\| answers right, % \| problems \| count \| (.*) \|\n\|[-: |]+\|\n((?:\|.*\n)+)", text
    ).groups()
    columns = heading.split(" | ")
    rows = [[cell.strip() for cell in line.strip("|").split(" | ")] for line in lines.splitlines()]
    return {(row[0], row[1]): dict(zip(["count", *columns], row[2:], strict=True)) for row in rows}


def test_all_rows_are_there():
    assert list(read_table()) == ROWS


@pytest.mark.parametrize("row", ROWS, ids=", ".join)
def test_figures_are_those_of_the_records(row):
    cells = read_table()[row]
    for column, search in SEARCHES.items():
        path = EVALUATIONS / f"published-{DATA_SETS[row[0]]}{search}.json"
        if not path.exists():
            assert cells[column] == "-"
            continue
        report = json.loads(path.read_text("utf-8"))["test"]["reports"][GROUPS[row[1]]]
        assert cells["count"] == f"{report['num_problems']:,}"
        found = round(report["answer_accuracy"] * report["num_problems"])
        assert cells[column] == f"{100 * found / report['num_problems']:.1f}", column
