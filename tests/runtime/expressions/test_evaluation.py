import math
import operator
import time
from decimal import Decimal
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hf_mwp.runtime.expressions import Expression, ExpressionError, parse_number


def evaluate(text, numbers=None):
    return Expression.from_infix(text).evaluate(numbers)


OPERATIONS = {"+": operator.add, "-": operator.sub, "*": operator.mul, "/": operator.truediv, "^": operator.pow}


def reference(node):
    """Exact recursive value for small integer exponents; `None` where the value may be a float or an error."""
    if node.is_leaf:
        return parse_number(node.token)
    left = reference(node.left)
    right = reference(node.right)
    if left is None or right is None:
        return None
    is_small_power = right.denominator == 1 and abs(right) <= 3
    if node.token == "^" and not is_small_power:
        return None
    try:
        return OPERATIONS[node.token](left, right)
    except ZeroDivisionError:
        return None


@settings(max_examples=50)
@given(st.data())
def test_value_equals_the_recursive_one(closed_trees, data):
    tree = data.draw(closed_trees)
    expected = reference(tree)
    if expected is not None:
        result = tree.evaluate()
        if isinstance(result, Fraction):
            assert result == expected
        else:
            assert math.isclose(result, expected, rel_tol=1e-9)


@settings(max_examples=50)
@given(st.data())
def test_every_value_is_a_finite_float(closed_trees, data):
    tree = data.draw(closed_trees)
    try:
        result = tree.evaluate()
    except ExpressionError as error:
        assert error.position is not None and str(tree).startswith(error.token, error.position)
    else:
        assert math.isfinite(float(result))
        assert (float(result) == 0) == (result == 0)


# Without a position where brackets of the text are needless.
@pytest.mark.parametrize(
    ("text", "reason", "position", "token"),
    [
        ("8/(4-2*2)+1", "division by zero", 1, "/"),
        ("0^(0-1)", "division by zero", 1, "^"),
        ("2/(3-3)^0.5", "division by zero", 1, "/"),
        ("9^9^9^9", "too large", 3, "^"),
        ("10^(10^10)", "too large", None, "^"),
        ("(1/3)^1000000", "too small", 5, "^"),
        ("(1/3)^(0-1000000)", "too large", 5, "^"),
        ("(0-2)^0.5", "complex", 5, "^"),
        ("10^200*10^200", "too large", 6, "*"),
        ("10^200/(1/10^200)", "too large", 6, "/"),
        ("10^(0-200)/10^200", "too small", 10, "/"),
        ("2^0.5*10^308*10", "too large", 12, "*"),
        ("1*(2-N3)", "no number", 5, "N3"),
    ],
)
def test_error_names_reason_and_position(text, reason, position, token):
    start = time.perf_counter()
    tree = Expression.from_infix(text)
    with pytest.raises(ExpressionError, match=reason) as error:
        tree.evaluate()
    assert time.perf_counter() - start < 1
    assert error.value.token == token
    assert str(tree).startswith(token, error.value.position)
    if position is not None:
        assert error.value.position == position


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("0^0", 1),
        ("0^5", 0),
        ("(1/2)^3", "1/8"),
        ("(2/3)^(0-2)", "9/4"),
        ("(0-2)^3", -8),
        ("1^(10^10)", 1),
        ("(0-1)^(2^60)", 1),
        ("(0-1)^(2^60+1)", -1),
        ("(0-1)^(0-3)", -1),
        ("2^4.0", 16),
        ("(1+1%)^3", "1030301/1000000"),
        ("0.1+0.2", "3/10"),
    ],
)
def test_exact_values(text, expected):
    result = evaluate(text)
    assert isinstance(result, Fraction)
    assert result == Fraction(expected)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("27^(1/3)", 3.0),
        ("2^0.5*2^0.5", 2.0),
        ("0.25^1.5-1", -0.875),
        ("1.0025^240", 1.0025**240),
        ("(0-1.5)^501", -(1.5**501)),
        ("1.0025^100*1.0025^100", 1.0025**200),
    ],
)
def test_values_beyond_exact_arithmetic_are_floats(text, expected):
    result = evaluate(text)
    assert isinstance(result, float)
    assert math.isclose(result, expected, rel_tol=1e-12)


def test_long_fractions_become_floats():
    primes = []
    for number in range(2, 1000):
        if all(number % prime for prime in primes):
            primes.append(number)
    tokens = ["+"] * (len(primes) - 1)
    for prime in primes:
        tokens += ["/", "1", str(prime)]
    result = Expression.from_prefix(tokens).evaluate()
    assert isinstance(result, float)
    assert math.isclose(result, sum(1 / prime for prime in primes))


@pytest.mark.parametrize(
    ("text", "numbers", "expected"),
    [
        ("N0*N1", ["1(3/4)", "20%"], "7/20"),
        ("N0*N1", [Fraction(1, 3), 6], 2),
        ("N0+1", [0.5], "3/2"),
        ("N0+1", [Decimal("0.5")], "3/2"),
        ("N1", ["apples", "2"], 2),
    ],
)
def test_numbers_of_slots(text, numbers, expected):
    assert evaluate(text, numbers) == Fraction(expected)


def test_number_with_too_many_digits_becomes_a_float():
    assert isinstance(evaluate("N0", [Fraction(3**640)]), float)


@pytest.mark.parametrize("number", ["apples", "", math.inf, math.nan, Fraction(10) ** 400], ids=str)
def test_invalid_number_of_a_slot_is_refused(number):
    with pytest.raises(ExpressionError):
        evaluate("N0+1", [number])
