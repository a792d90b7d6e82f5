"""Equations as the data sets write them, with values worked out by hand."""

from fractions import Fraction

import pytest

from hf_mwp.runtime.expressions import Expression


DIALECTS = [
    # the unknown and the result
    ("x=(70+6)/(3+1)", 19),
    ("56*9=x", 504),
    ("0.8-0.1", "7/10"),
    ("half_recipe=0.6667*0.5", "6667/20000"),
    ("(50.0+60.0)/2.0=average", 55),
    ("41 + 46 = X", 87),
    ("7+2=9", 9),
    ("200/28=7 r4", "50/7"),
    ("10/3=3.333", "10/3"),
    ("x = 120.0 * 1000.0 * 50.0 / 10000.0", 600),
    # percentages
    ("x=30/[1-37.5%-(1-37.5%)*40%]", 80),
    ("x=(98/(98+2))*(98+2)%", "49/50"),
    ("x=250*(2/5)%", 1),
    ("20 % * 50", 10),
    # fractions and mixed numbers
    ("x=2.75-1(5/6)+3(1/4)-2(1/6)", 2),
    ("x=552*2/(1/5(1/2)+1/6)", 3168),
    ("x=8(22/63)", "526/63"),
    ("x=((2(1/2)*0.4+1(4/5)/1.8)/((1/4)+0.75))", 2),
    ("1½+2=3½", "7/2"),
    ("½=x", "1/2"),
    ("x=１ ⅓*3-(-¾)", "19/4"),
    ("x=2/½%", 400),
    # powers
    ("x=1999+999^2", 1000000),
    ("x=4**2+3*1", 19),
    ("x=((4/2)+1)^(4/2)-(4/2)^(4/2)", 5),
    ("2^3^2", 512),
    ("2^(0-3)", "1/8"),
    # brackets
    ("x=[490-50*(4+1)]/4", 60),
    ("x=1/[(((1)/(8*15))+((1)/(9*20)))*6]", 12),
    ("x={[(18-3)*2+6]/4}*2", 18),
    ("((((5))))", 5),
    # ratios
    ("x=4:8*10", 5),
    ("x=2:(5*(1/3))", "6/5"),
    ("x=52/(1-(1-(3/8))*((1/3):75%))*2", 144),
    # signs
    ("x=1-(-(1/2))", "3/2"),
    ("x=(-1)**6+(-24)*((1/8)+2(2/3)-2.75)", 0),
    ("x=(((-2.0)*(-15.0))*4.0)*(-1.0)", -120),
    ("x=+(+4+3-2-1+3-2-1)*503", 2012),
    ("x=(2/+(3/1))", "2/3"),
    ("2*-3*4", -24),
    ("-2^2", -4),
    ("2^-1", "1/2"),
    ("-2*-3", 6),
    ("1--1", 2),
    # full-width and other spellings
    ("ｘ＝（７０＋６）／（３＋１）", 19),
    ("１＋２．５×（３／８）", "31/16"),
    ("［４９０－５０×（４＋１）］÷４", 60),
    ("【2+3】×{1}", 5),
    ("1,234+1", 1235),
    (".5+.25", "3/4"),
    ("\u3000１２ ／ ５\t", "12/5"),
]


@pytest.mark.parametrize(("text", "value"), DIALECTS)
def test_value(text, value):
    assert Expression.from_infix(text).evaluate() == Fraction(value)


@pytest.mark.parametrize(("text", "value"), DIALECTS)
def test_fraction_literals_have_the_same_value(text, value):
    numbers = "(1/5) (1/4) (3/8) (1/2) (2/5) (4/2) -5 -10 -35 -1".split()
    assert Expression.from_infix(text, numbers).evaluate() == Fraction(value)


@pytest.mark.parametrize(
    ("text", "numbers", "prefix"),
    [
        ("x=16*(3/8)", None, "* 16 / 3 8"),
        ("x=16*(3/8)", "16", "* 16 / 3 8"),
        ("x=16*(3/8)", "16 (3/8)", "* 16 (3/8)"),
        ("x=16*(3/8)", "16 （３／８）", "* 16 (3/8)"),
        ("x=16*((3/8))", "(3/8)", "* 16 (3/8)"),
        ("x=16*((3)/8)", "(3/8)", "* 16 / 3 8"),
        ("x=3/8*(3/8)", "3 8 (3/8)", "* / 3 8 (3/8)"),
        ("1(3/4)+1", None, "+ 1(3/4) 1"),
        ("1(3/4)+1", "(3/4)", "+ 1(3/4) 1"),
        ("1½*½", None, "* 1(1/2) / 1 2"),
        ("1½*½", "(1/2)", "* 1(1/2) (1/2)"),
        ("-1½", "-1 -1(1/2)", "-1(1/2)"),
        ("-5+3", None, "+ - 0 5 3"),
        ("-5+3", "5", "+ - 0 5 3"),
        ("-5+3", "-5", "+ -5 3"),
        ("3-5", "-5", "- 3 5"),
        ("3-(-5)", "-5", "- 3 -5"),
        ("3*-5", "－５", "* 3 -5"),
        ("-5^2", "-5", "- 0 ^ 5 2"),
        ("(-5)^2", "-5", "^ -5 2"),
        ("-(3/8)", "-(3/8)", "-(3/8)"),
        ("-5%", "-5", "- 0 5%"),
        ("-5%", "-5%", "-5%"),
        ("20 %", None, "20%"),
        ("(20)%", None, "/ 20 100"),
        ("N0%", None, "/ N0 100"),
        ("2^(3)%", None, "^ 2 / 3 100"),
        ("x=N0*(N1+N12)", None, "* N0 + N1 N12"),
        ("N0+N1=x", None, "+ N0 N1"),
        ("1,234.50", None, "1234.50"),
    ],
)
def test_tree_with_the_literals_of_the_text(text, numbers, prefix):
    assert Expression.from_infix(text, numbers and numbers.split()).to_prefix() == prefix.split()


@pytest.mark.parametrize(
    ("text", "position", "token"),
    [
        ("x=80千米/小时", 4, "千米"),
        ("x=((1/6)1+2)", 8, "1"),
        ("x=1+2)", 5, ")"),
        ("x=[1+2)", 6, ")"),
        ("x=", 2, None),
        ("", 0, None),
        ("()", 1, ")"),
        ("1+", 2, None),
        ("1+*2", 2, "*"),
        ("1 2", 2, "2"),
        ("2(3+4)", 1, "("),
        ("1 (5/6)", 2, "(5/6)"),
        ("5(3/0)", 1, "("),
        ("5%%", 2, "%"),
        ("x=x+1", 2, "x"),
        ("0.8*x=16", 4, "x"),
        ("x+1=y+2", 0, "x"),
        ("x + y = 1000.0 ; x = y", 15, ";"),
        ("X=0.32=0.21", 6, "="),
        ("5+1=2+3", 3, "="),
        ("=", 0, "="),
        ("3#4", 1, "#"),
        ("3+😀", 2, "😀"),
        ("3 + N01", 4, "N01"),
        ("N99999", 0, "N99999"),
        ("1，5", 1, "，"),
        ("1.2.3", 3, "."),
        ("٣+1", 0, "٣"),
        ("__import__('os')", 0, "__import__"),
    ],
)
def test_error_names_position_and_token(text, position, token):
    with pytest.raises(ValueError) as info:
        Expression.from_infix(text)
    assert type(info.value).__name__ == "ExpressionError"
    assert (info.value.position, info.value.token) == (position, token)
    assert f"at {position}" in str(info.value)
    if token:
        assert repr(token) in str(info.value)
