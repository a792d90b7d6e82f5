import pytest

from hf_mwp.runtime.expressions import Expression, ExpressionError
from hf_mwp.runtime.expressions.notations import plain_notation


@pytest.mark.parametrize(
    ("written", "plain"),
    [
        (r"\frac{3}{4}", "(3/4)"),
        (r"\frac34", "(3/4)"),
        (r"1\tfrac{1}{2}", "1(1/2)"),
        (r"\frac{3+5}{2}", "((3+5)/(2))"),
        (r"2\frac{a}{b}", "2*((a)/(b))"),
        (r"\frac{\frac{1}{2}}{3}", "(((1/2))/(3))"),
        (r"12\times50\%", "12*50%"),
        (r"\left(3\div4\right)", "(3/4)"),
        ("1 000+12'500+3{,}600+1,20,000", "1000+12500+3600+120000"),
        ("1 000/3", "1 000/3"),
        ("百分之50*4分之3", "50%*(3/4)"),
        ("1又1/2", "1(1/2)"),
        ("2^{10}", "2^{10}"),
        ("x=3*(4+5)", "x=3*(4+5)"),
    ],
)
def test_notation_is_rewritten(written, plain):
    assert plain_notation(written) == plain


@pytest.mark.parametrize(
    ("equation", "value"),
    [(r"x=\frac{1}{2}*4", 2), (r"x=12\times50\%", 6), ("1又1/2+0.5", 2), ("1 000+5=1005", 1005), ("5‰*1000", 5)],
)
def test_value_of_an_equation_with_notations(equation, value):
    assert Expression.from_infix(equation).evaluate() == value


def test_unknown_command_is_refused():
    with pytest.raises(ExpressionError):
        Expression.from_infix(r"\sqrt{4}+1")


def test_deeply_nested_fractions_are_read_without_recursion():
    assert "frac" in plain_notation(r"\frac{" * 2000 + "1" + "}{2}" * 2000)
