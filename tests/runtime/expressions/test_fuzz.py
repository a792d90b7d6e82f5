"""The parser on random strings, on long strings, and compared with Python's own grammar."""

import ast
import math
import operator
import random
import time
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hf_mwp.runtime.expressions import Expression, ExpressionError
from tests.slow_parameters import slow_after


PIECES = [*"0123456789()[]{}+-*/^%.,:=xN; ３（）÷−", "**", "N0", "N1", "(3/8)", "1(3/4)", "x=", "20%"]
ODD = [*"😀\0\né²٣½x'\"\\$\ud800\u202e", "千米", "__", "r4", "1e9"]
OPERANDS = ["1", "2.5", "N0", "(1/2)", "9", "(3+4)", "20%", "-3"]
NUMBERS = [None, [], ["(3/8)", "-3", "1", "(1/2)"]]


def random_text(rng):
    form = rng.random()
    if form < 0.4:
        return "".join(rng.choices(PIECES, k=rng.randint(0, 12)))
    if form < 0.6:
        return "".join(rng.choices(PIECES + ODD, k=rng.randint(0, 20)))
    # Operands and operators in turn, which mostly are well-formed.
    text = rng.choice(["", "x=", "-"])
    for _ in range(rng.randint(0, 8)):
        text += rng.choice(OPERANDS) + rng.choice("+-*/^")
    return text + rng.choice(["7", "0", "(2-2)", "", ")"])


@pytest.mark.parametrize("size", [1_000, pytest.param(200_000, marks=pytest.mark.slow)])
def test_random_text_is_parsed_or_refused(size):
    rng = random.Random(0)
    parsed = 0
    for _ in range(size):
        text = random_text(rng)
        start = time.perf_counter()
        try:
            tree = Expression.from_infix(text, rng.choice(NUMBERS))
            parsed += 1
            tree.canonical()
            assert Expression.from_infix(str(tree), [leaf.token for leaf in tree.leaves()]) == tree
            value = tree.evaluate(["2", "3"])
            assert isinstance(value, Fraction) or math.isfinite(value)
        except ExpressionError as error:
            assert error.position is None or 0 <= error.position <= max(len(text), 1000)
        assert time.perf_counter() - start < 1
    assert parsed > size / 5


@pytest.mark.parametrize("piece", "( ) [ () (1 1( - + 1+ 2^ ((1) % 1% N0* 1(1/2) = x=".split())
@pytest.mark.parametrize("end", slow_after(1, ["", "1"]))
def test_text_of_10_000_characters_takes_linear_time(piece, end):
    text = piece * (10_000 // len(piece)) + end
    start = time.perf_counter()
    try:
        Expression.from_infix(text).evaluate()
    except ExpressionError:
        pass
    assert time.perf_counter() - start < 5


@pytest.mark.parametrize("depth", slow_after(1, [2_000, 50_000]))
def test_nested_brackets_around_a_number(depth):
    assert Expression.from_infix("(" * depth + "1" + ")" * depth).to_infix() == "1"


@settings(max_examples=50)
@given(st.text(alphabet="0123456789+-*/^(). ", max_size=15))
def test_value_equals_the_value_of_the_python_expression(text):
    text = text.replace("^", "**")
    try:
        tree = Expression.from_infix(text)
        node = ast.parse(text.strip(), mode="eval").body
    except (ExpressionError, SyntaxError, ValueError):
        return
    expected = python_value(node, text.strip())
    if expected is not None:
        assert tree.evaluate() == expected


OPERATIONS = {ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.Div: operator.truediv}


def python_value(node, text):
    """The value of a node of Python's syntax tree, `None` if it has none or a power is large. Nothing is executed."""
    if isinstance(node, ast.Constant):
        return Fraction(ast.get_source_segment(text, node))
    if isinstance(node, ast.UnaryOp):
        value = python_value(node.operand, text)
        return -value if value is not None and isinstance(node.op, ast.USub) else value
    if not isinstance(node, ast.BinOp):
        return None
    left = python_value(node.left, text)
    right = python_value(node.right, text)
    if left is None or right is None:
        return None
    operation = OPERATIONS.get(type(node.op))
    if isinstance(node.op, ast.Pow) and right.denominator == 1 and abs(right) <= 4:
        operation = operator.pow
    try:
        return operation and operation(left, right)
    except ZeroDivisionError:
        return None
