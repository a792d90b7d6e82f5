"""Problems of the data sets in the repository."""

import pytest

from hf_mwp.solver.data import problem_from_row
from hf_mwp.solver.data.sources import read_part


@pytest.fixture(scope="session")
def chinese_problems():
    rows, _ = read_part("math23k:validation")
    return [problem_from_row(row) for row in rows[:300]]


@pytest.fixture(scope="session")
def english_problems():
    rows, _ = read_part("asdiv_a:all")
    return [problem_from_row(row) for row in rows]


@pytest.fixture(params=["chinese_problems", "english_problems"])
def shipped_problems(request):
    """The Chinese problems, then the English ones."""
    return request.getfixturevalue(request.param)[:600]
