import pytest
from hypothesis import given
from hypothesis import strategies as st

from hf_mwp.runtime.expressions import Expression, ExpressionError
from hf_mwp.runtime.problems.linear_equations import solve_equation
from hf_mwp.solver.data import load_mwp_dataset, problem_from_row


@pytest.mark.parametrize(
    ("equation", "solution"),
    [
        ("6*x+4*(10-x)=50", "(50-4*10)/(6-4)"),
        ("x/5-5=x/7+5", "(5+5)/(1/5-1/7)"),
        ("x+(x/3)=280", "280/(1+1/3)"),
        ("3*(x+4)=27", "27/3-4"),
        ("27=3*(x+4)", "27/3-4"),
        ("2(x+1)=8", "8/2-1"),
        ("2x+3=11", "(11-3)/2"),
        ("10-y=4", "10-4"),
        ("5/x=2", "5/2"),
        ("20%*x=4", "4/20%"),
        ("(３＋４）×z＝2*z+15", "15/(3+4-2)"),
        ("2*x+3=x+3", "(3-3)/(2-1)"),
    ],
)
def test_solution(equation, solution):
    assert solve_equation(equation).to_infix() == solution


@pytest.mark.parametrize(
    "equation", ["x^2=4", "x*x=4", "x=x", "3*x=3*x+1", "x+y=3", "4+2=6", "x+1", "x=2=3", "x+=3", "", "8/(x+x)=2"]
)
def test_equations_without_one_solution_are_refused(equation):
    with pytest.raises(ExpressionError):
        solve_equation(equation)


EQUATIONS = (
    "{a}*x+{b}={c}*x+{d}",
    "{a}*(x-{b})={c}*x-{d}",
    "(x+{a})/{b}-{c}=x*{d}-{e}",
    "{a}-{b}*({c}-x)=x",
)


@given(*[st.integers(1, 30)] * 5, st.sampled_from(EQUATIONS))
def test_the_solution_satisfies_the_equation(a, b, c, d, e, pattern):
    equation = pattern.format(a=a, b=b, c=c, d=d, e=e)
    try:
        value = solve_equation(equation).evaluate()
    except ExpressionError:
        return  # parallel lines
    left, right = equation.replace("x", "N0").split("=")
    assert Expression.from_infix(left).evaluate([value]) == Expression.from_infix(right).evaluate([value])


def test_loader_solves_equations_on_request(tmp_path):
    rows = [
        '{"text": "6元的和4元的共10张，50元。6元的几张？", "equation": "6.0*x+4.0*(10.0-x)=50.0", "answer": "5"}',
        '{"text": "3和4共几？", "equation": "x=3+4", "answer": "7"}',
    ]
    (tmp_path / "train.jsonl").write_text("\n".join(rows), encoding="utf-8")
    assert len(load_mwp_dataset(tmp_path)["train"]) == 1
    solved, unchanged = load_mwp_dataset(tmp_path, solve_equations=True)["train"]
    assert solved["equation"] == "x=(50.0-4.0*10.0)/(6.0-4.0)"
    assert problem_from_row(solved).agrees()
    assert unchanged["equation"] == "x=3+4"
