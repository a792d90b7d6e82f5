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


def is_solved(equation):
    """Whether the equation is arithmetic, or has an unknown alone on one side that the other side does not have."""
    sides = [side.strip() for side in equation.split("=")]
    unknown = [side for side in sides if re.fullmatch(r"[A-Za-z_]\w*", side)]
    arithmetic = "".join(side for side in sides if side not in unknown)
    return ";" not in equation and len(unknown) <= 1 and not re.search("[A-Za-z]", arithmetic)


MATH23K = ["9718", "9761", "12495", "22085"]
MAWPS = [1659, 1853, 2004, 3071, 3100, 3162, 3165, 3177, 3253, 3298, 3307, 3327, 3330]


# Files, fields of id, equation and answer, numbers of problems and of those whose equation need not be solved, ids of
# equations that cannot be parsed, and ids (or their number) of those that do not give their answer.
@pytest.mark.parametrize(
    ("files", "fields", "num_problems", "num_solved", "unparsed", "disagreeing"),
    [
        pytest.param(
            "math23k/train math23k/valid math23k/test", "id equation ans", 23162, 23162, ["17520", "10431"], MATH23K,
            marks=pytest.mark.slow,
        ),
        pytest.param("ape210k/valid", "id equation ans", 5000, 5000, [], ["1219785"], marks=pytest.mark.slow),
        ("ape_clean/test", "id equation ans", 2500, 2500, [], ["97912", "323674"]),
        ("asdiv/asdiv_a", "id formula answer", 1218, 1218, [], 29),
        ("mawps/mawps_single", "iIndex lEquations lSolutions", 1987, 1987, [263], MAWPS),
        ("mawps/mawps", "iIndex lEquations lSolutions", 2373, 2023, [263], 18),
        ("hmwp/hmwp", "id equation ans", 5491, 2, [], []),
        ("cm17k/valid", "id equation ans", 1703, 641, [], 43),
    ],
)  # fmt: skip
def test_equations_are_parsed_and_give_their_answers(files, fields, num_problems, num_solved, unparsed, disagreeing):
    rows = []
    for file in files.split():
        rows += read_rows(f"{file}.jsonl")
    assert len(rows) == num_problems
    id_field, equation_field, answer_field = fields.split()
    solved = 0
    unparsed_ids = []
    disagreeing_ids = []
    for row in rows:
        equation = row[equation_field]
        if isinstance(equation, list):
            equation = ";".join(equation)
        if num_solved < num_problems and not is_solved(equation):
            with pytest.raises(ExpressionError):
                Expression.from_infix(equation)
            continue
        solved += 1
        try:
            tree = Expression.from_infix(equation)
        except ExpressionError:
            unparsed_ids.append(row[id_field])
            continue
        expected = answer_value(row[answer_field])
        if abs(float(tree.evaluate()) - expected) > 1e-4 * abs(expected):
            disagreeing_ids.append(row[id_field])
        assert tree.canonical().canonical() == tree.canonical()
        assert Expression.from_infix(str(tree), [leaf.token for leaf in tree.leaves()]) == tree
    assert (solved, unparsed_ids) == (num_solved, unparsed)
    if isinstance(disagreeing, int):
        assert len(disagreeing_ids) == disagreeing
    else:
        assert sorted(disagreeing_ids, key=int) == disagreeing


def test_listed_problems_of_ape_clean_agree():
    ids = {row["id"] for row in read_rows("ape_clean/test.jsonl")}
    listed = ids.intersection((DATA / "ape_clean/ape_kg_test_id.txt").read_text().split())
    assert len(listed) == 1548
    assert not listed & {"97912", "323674"}
