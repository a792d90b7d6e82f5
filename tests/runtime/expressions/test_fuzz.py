"""Random strings and Python's own grammar against the parser."""

import ast
import math
import random
import time
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hf_mwp.runtime.expressions import Expression, ExpressionError


PIECES = list("0123456789()[]{}+-*/^%.,:=xN; ") + [
    "**",
    "N0",
    "N1",
    "(3/8)",
    "1(3/4)",
    "x=",
    "20%",
    "３",
    "（",
    "）",
    "÷",
    "−",
]
ODD = ["千米", "😀", "\0", "\n", "\ud800", "é", "²", "٣", "½", "x", "__", "'", '"', "\\", "$", "\u202e", "r4", "1e9"]


def fuzz(count, seed):
    """Parses, evaluates and prints random strings; returns how many parsed and the longest time for one."""
    rng = random.Random(seed)
    parsed, slowest = 0, 0.0
    for _ in range(count):
        kind = rng.random()
        if kind < 0.5:
            text = "".join(rng.choices(PIECES, k=rng.randint(0, 12)))
        elif kind < 0.8:  # operands and operators in turn: mostly well-formed
            text = rng.choice(["", "x=", "-"]) + "".join(
                rng.choice(["1", "2.5", "N0", "(1/2)", "9", "(3+4)", "20%", "-3"]) + rng.choice("+-*/^")
                for _ in range(rng.randint(0, 8))
            )
            text += rng.choice(["7", "0", "(2-2)", "", ")"])
        elif kind < 0.95:
            text = "".join(rng.choices(PIECES + ODD, k=rng.randint(0, 20)))
        else:
            text = "".join(chr(rng.randrange(0x110000)) for _ in range(rng.randint(0, 15)))
        numbers = rng.choice([None, [], ["(3/8)", "-3", "1", "(1/2)"]])
        start = time.perf_counter()
        try:
            tree = Expression.from_infix(text, numbers)
            parsed += 1
            tree.canonical()
            assert Expression.from_infix(str(tree), [leaf.token for leaf in tree.leaves()]) == tree
            value = tree.evaluate(["2", "3"])
            assert isinstance(value, Fraction) or math.isfinite(value)
        except ExpressionError as error:
            assert error.position is None or 0 <= error.position <= max(len(text), 1000)
        slowest = max(slowest, time.perf_counter() - start)
    return parsed, slowest


@pytest.mark.parametrize("count", [10_000, pytest.param(200_000, marks=pytest.mark.slow)])
def test_random_strings(count):
    parsed, slowest = fuzz(count, seed=0)
    assert parsed > count / 5 and slowest < 1


@pytest.mark.parametrize(
    "piece", ["(", ")", "[", "()", "(1", "1(", "-", "+", "1+", "2^", "((1)", "%", "1%", "N0*", "1(1/2)", "=", "x="]
)
def test_10_000_characters(piece):
    text = piece * (10_000 // len(piece))
    start = time.perf_counter()
    for candidate in (text, text + "1"):
        with pytest.raises(ExpressionError):
            tree = Expression.from_infix(candidate)
            if tree.num_operators:
                tree.evaluate()
                raise ExpressionError("fine: parsed")
            raise ExpressionError("fine: only signs or brackets")
    assert time.perf_counter() - start < 5


def test_nested_brackets_around_one_number():
    assert Expression.from_infix("(" * 2000 + "1" + ")" * 2000).to_infix() == "1"
    assert Expression.from_infix("(" * 50_000 + "1" + ")" * 50_000).to_infix() == "1"


@given(st.text(max_size=30))
def test_any_text(text):
    try:
        assert Expression.from_infix(text).to_prefix()
    except ExpressionError:
        pass


@given(st.text(alphabet="0123456789+-*/^(). ", max_size=15))
def test_agrees_with_python_grammar(text):
    """What both grammars read has the same value; the reference walks Python's syntax tree, nothing is executed."""
    text = text.replace("^", "**")
    try:
        tree = Expression.from_infix(text)
        node = ast.parse(text.strip(), mode="eval").body
    except (ExpressionError, SyntaxError, ValueError):
        return
    expected = _walk(node, text.strip())
    if expected is not None:
        assert tree.evaluate() == expected


def _walk(node, text):
    if isinstance(node, ast.Constant):
        return Fraction(ast.get_source_segment(text, node))
    if isinstance(node, ast.UnaryOp):
        value = _walk(node.operand, text)
        return None if value is None else (-value if isinstance(node.op, ast.USub) else value)
    if not isinstance(node, ast.BinOp):
        return None
    left, right = _walk(node.left, text), _walk(node.right, text)
    if left is None or right is None:
        return None
    if isinstance(node.op, ast.Add):
        return left + right
    if isinstance(node.op, ast.Sub):
        return left - right
    if isinstance(node.op, ast.Mult):
        return left * right
    if isinstance(node.op, ast.Div):
        return left / right if right else None
    small = isinstance(node.op, ast.Pow) and right.denominator == 1 and abs(right) <= 4 and (left or right >= 0)
    return left**right if small else None
