"""The example script that measures how solvers read what people write."""

from pathlib import Path

import pytest

from tests.examples.scripts import load_script, write_json_lines


PROBLEMS = [
    {"language": "zh", "pattern": "numerals", "text": "有3个，又买5盒", "answer": "8", "plain": None},
    {
        "language": "zh",
        "pattern": "halves",
        "text": "重2千克，又加3千克半",
        "answer": "11/2",
        "plain": "重2千克，又加3.5千克",
    },
    {"language": "zh", "pattern": "halves", "text": "有1个，又买l2个", "answer": "14", "plain": "有1个，又买12个"},
]


@pytest.fixture(scope="module")
def script():
    return load_script("people_texts.py")


def add_numbers(problem):
    """A solver that is always sure and adds all numbers."""
    return [{"answer": float(sum(problem.values)), "score": 0.1, "plausibility": 0.95}]


def test_each_pattern_and_reading_is_counted(script):
    rows = script.table_rows(add_numbers, PROBLEMS, ["original", "plain", "plain text"])
    assert rows == [
        ["halves", "2", "0", "1", "1"],
        ["numerals", "1", "1", "1", "1"],
        ["all", "3", "1", "2", "2"],
        ["wrong, plausibility of at least 0.9", "", "2", "1", "1"],
    ]


def test_problems_are_read_from_json_lines(script, tmp_path):
    file = write_json_lines(tmp_path / "texts.jsonl", PROBLEMS)
    assert script.read_problems(Path(file)) == PROBLEMS
