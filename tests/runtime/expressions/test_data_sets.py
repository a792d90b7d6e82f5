"""The public data sets as a whole: what parses, what agrees with its answer, and what does not, by name."""

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


def rows(name):
    with open(DATA / name, encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


def answer_value(answer):
    """`((7)/(4))`, `7((2)/(3))`, `23(1/3)`, `10%`, `9 (apples)`, `[600]`, `1200/(1+5%)` as a float."""
    text = str(answer[0] if isinstance(answer, list) else answer)
    text = re.sub(r"\s*\([ a-zA-Z].*$", "", text)
    text = re.sub(r"\((\d+)\)/\((\d+)\)", r"\1/\2", text)
    try:
        return float(parse_number(text))
    except ExpressionError:
        return float(Expression.from_infix(text).evaluate())


def sweep(problems):
    """Ids that do not parse and ids that do not give their answer, of `(id, equation, answer)`."""
    unparsed, disagreeing = [], []
    for name, equation, answer in problems:
        try:
            tree = Expression.from_infix(equation)
        except ExpressionError:
            unparsed.append(name)
            continue
        expected = answer_value(answer)
        if abs(float(tree.evaluate()) - expected) > 1e-4 * abs(expected):
            disagreeing.append(name)
        assert tree.canonical().canonical() == tree.canonical()
        assert Expression.from_infix(str(tree), [leaf.token for leaf in tree.leaves()]) == tree
    return unparsed, disagreeing


@pytest.mark.slow
def test_math23k():
    problems = [row for split in ("train", "valid", "test") for row in rows(f"math23k/{split}.jsonl")]
    assert len(problems) == 23162
    unparsed, disagreeing = sweep((row["id"], row["equation"], row["ans"]) for row in problems)
    assert unparsed == ["17520", "10431"]
    assert disagreeing == ["9761", "12495", "22085", "9718"]


@pytest.mark.parametrize(
    "name, count, disagree",
    [
        ("ape210k/valid", 5000, ["1219785"]),
        ("ape210k/test", 2500, ["323674", "97912"]),
        ("ape_clean/test", 2500, ["323674", "97912"]),
    ],
)
def test_ape(name, count, disagree):
    problems = rows(f"{name}.jsonl")
    assert len(problems) == count
    assert sweep((row["id"], row["equation"], row["ans"]) for row in problems) == ([], disagree)


def test_ape_clean_list_agrees_throughout():
    listed = set((DATA / "ape_clean/ape_kg_test_id.txt").read_text().split())
    problems = [row for row in rows("ape_clean/test.jsonl") if row["id"] in listed]
    assert len(problems) == 1548
    assert sweep((row["id"], row["equation"], row["ans"]) for row in problems) == ([], [])


def test_asdiv_a():
    problems = rows("asdiv/asdiv_a.jsonl")
    unparsed, disagreeing = sweep((row["id"], row["formula"], row["answer"]) for row in problems)
    assert (len(problems), unparsed, len(disagreeing)) == (1218, [], 29)
    types = {row["id"]: row["solution_type"] for row in problems}
    assert sum(types[name] in ("Floor-Division", "Ceil-Division") for name in disagreeing) == 28


def test_mawps():
    problems = rows("mawps/mawps_single.jsonl")
    unparsed, disagreeing = sweep((row["iIndex"], row["lEquations"][0], row["lSolutions"][0]) for row in problems)
    assert (len(problems), unparsed) == (1987, [263])
    assert disagreeing == [3165, 3177, 3327, 1853, 3162, 3307, 3100, 2004, 1659, 3298, 3071, 3330, 3253]


def test_mawps_with_equations_to_solve():
    problems = rows("mawps/mawps.jsonl")
    solved = [row for row in problems if _is_solved(row["lEquations"][0]) and len(row["lEquations"]) == 1]
    assert (len(problems), len(solved)) == (2373, 2023)
    unparsed, disagreeing = sweep((row["iIndex"], row["lEquations"][0], row["lSolutions"][0]) for row in solved)
    assert (unparsed, len(disagreeing)) == ([263], 18)
    for row in problems:
        if row not in solved:
            with pytest.raises(ExpressionError) as info:
                Expression.from_infix(";".join(row["lEquations"]))
            assert info.value.token is not None


def test_hmwp():
    problems = rows("hmwp/hmwp.jsonl")
    solved = [row for row in problems if _is_solved(row["equation"])]
    assert (len(problems), len(solved)) == (5491, 2)
    assert sweep((row["id"], row["equation"], row["ans"]) for row in solved) == ([], [])
    for row in problems:
        if row not in solved:
            with pytest.raises(ExpressionError) as info:
                Expression.from_infix(row["equation"])
            assert info.value.token in ("x", "y", ";", "=")


def test_cm17k():
    problems = rows("cm17k/valid.jsonl")
    solved = [row for row in problems if _is_solved(row["equation"])]
    assert (len(problems), len(solved)) == (1703, 641)
    assert {row["type"] for row in solved} == {0, 1}
    unparsed, disagreeing = sweep((row["id"], row["equation"], row["ans"]) for row in solved)
    assert (unparsed, len(disagreeing)) == ([], 43)


def _is_solved(equation):
    """Arithmetic alone, or with an unknown alone on one side that the other does not have."""
    sides = [side.strip() for side in equation.split("=")]
    unknown = [side for side in sides if re.fullmatch(r"[A-Za-z_]\w*", side)]
    rest = [side for side in sides if side not in unknown]
    return ";" not in equation and len(unknown) <= 1 and not re.search("[A-Za-z]", "".join(rest))
