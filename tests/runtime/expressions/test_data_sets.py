"""The public data sets as a whole: ids of the problems that cannot be parsed or do not give their answer."""

import json
import os
import re
from pathlib import Path

import pytest

from hf_mwp.runtime.expressions import Expression, ExpressionError, parse_number


DATA = Path(os.environ.get("HF_MWP_SHARED_DATA", Path(__file__).resolve().parents[4] / "shared" / "data"))

pytestmark = [
    pytest.mark.shared_data,
    pytest.mark.skipif(not DATA.is_dir(), reason="the full data sets are not here"),
]


def read_rows(name):
    rows = []
    with open(DATA / name, encoding="utf-8") as lines:
        for line in lines:
            rows.append(json.loads(line))
    return rows


def answer_value(answer):
    """`((7)/(4))`, `7((2)/(3))`, `23(1/3)`, `10%`, `9 (apples)`, `[600]`, `1200/(1+5%)` as a float."""
    text = str(answer[0] if isinstance(answer, list) else answer)
    text = re.sub(r"\s*\([ a-zA-Z].*$", "", text)
    text = re.sub(r"\((\d+)\)/\((\d+)\)", r"\1/\2", text)
    try:
        return float(parse_number(text))
    except ExpressionError:
        return float(Expression.from_infix(text).evaluate())


def sweep(rows, id_field="id", equation_field="equation", answer_field="ans"):
    """Return the ids of the problems that do not parse, and of those that do not give their answer."""
    unparsed = []
    disagreeing = []
    for row in rows:
        equation = row[equation_field]
        try:
            tree = Expression.from_infix(equation if isinstance(equation, str) else equation[0])
        except ExpressionError:
            unparsed.append(row[id_field])
            continue
        expected = answer_value(row[answer_field])
        if abs(float(tree.evaluate()) - expected) > 1e-4 * abs(expected):
            disagreeing.append(row[id_field])
        assert tree.canonical().canonical() == tree.canonical()
        assert Expression.from_infix(str(tree), [leaf.token for leaf in tree.leaves()]) == tree
    return unparsed, disagreeing


@pytest.mark.slow
def test_math23k():
    rows = []
    for split in ("train", "valid", "test"):
        rows += read_rows(f"math23k/{split}.jsonl")
    assert len(rows) == 23162
    assert sweep(rows) == (["17520", "10431"], ["9761", "12495", "22085", "9718"])


@pytest.mark.slow
def test_ape_validation():
    rows = read_rows("ape210k/valid.jsonl")
    assert len(rows) == 5000
    assert sweep(rows) == ([], ["1219785"])


def test_ape_clean():
    rows = read_rows("ape_clean/test.jsonl")
    listed = (DATA / "ape_clean/ape_kg_test_id.txt").read_text().split()
    assert len(rows) == 2500
    assert len({row["id"] for row in rows}.intersection(listed)) == 1548
    assert sweep(rows) == ([], ["323674", "97912"])
    assert not {"323674", "97912"}.intersection(listed)


def test_asdiv_a():
    rows = read_rows("asdiv/asdiv_a.jsonl")
    unparsed, disagreeing = sweep(rows, equation_field="formula", answer_field="answer")
    assert (len(rows), unparsed, len(disagreeing)) == (1218, [], 29)
    rounded = [row for row in rows if row["solution_type"] in ("Floor-Division", "Ceil-Division")]
    assert len({row["id"] for row in rounded}.intersection(disagreeing)) == 28


MAWPS_FIELDS = ("iIndex", "lEquations", "lSolutions")


def test_mawps_with_one_operation_or_more():
    rows = read_rows("mawps/mawps_single.jsonl")
    unparsed, disagreeing = sweep(rows, *MAWPS_FIELDS)
    assert (len(rows), unparsed) == (1987, [263])
    assert disagreeing == [3165, 3177, 3327, 1853, 3162, 3307, 3100, 2004, 1659, 3298, 3071, 3330, 3253]


def is_solved(equation):
    """Whether the equation is arithmetic, or has an unknown alone on one side that the other side does not have."""
    sides = [side.strip() for side in equation.split("=")]
    unknown = [side for side in sides if re.fullmatch(r"[A-Za-z_]\w*", side)]
    arithmetic = "".join(side for side in sides if side not in unknown)
    return ";" not in equation and len(unknown) <= 1 and not re.search("[A-Za-z]", arithmetic)


def assert_refused(equation):
    with pytest.raises(ExpressionError) as error:
        Expression.from_infix(equation)
    assert error.value.token is not None


def test_mawps_with_equations_to_solve():
    rows = read_rows("mawps/mawps.jsonl")
    solved = []
    for row in rows:
        equations = row["lEquations"]
        if len(equations) == 1 and is_solved(equations[0]):
            solved.append(row)
        else:
            assert_refused(";".join(equations))
    assert (len(rows), len(solved)) == (2373, 2023)
    unparsed, disagreeing = sweep(solved, *MAWPS_FIELDS)
    assert (unparsed, len(disagreeing)) == ([263], 18)


def test_hmwp():
    rows = read_rows("hmwp/hmwp.jsonl")
    solved = []
    for row in rows:
        if is_solved(row["equation"]):
            solved.append(row)
        else:
            assert_refused(row["equation"])
    assert (len(rows), len(solved)) == (5491, 2)
    assert sweep(solved) == ([], [])


def test_cm17k():
    rows = read_rows("cm17k/valid.jsonl")
    solved = [row for row in rows if is_solved(row["equation"])]
    assert (len(rows), len(solved)) == (1703, 641)
    unparsed, disagreeing = sweep(solved)
    assert (unparsed, len(disagreeing)) == ([], 43)
