"""Evaluation of expressions: exact while numerator and denominator are short, otherwise in floating point."""

import math
import operator as operators
from collections.abc import Callable, Sequence
from fractions import Fraction

from .numbers import ExpressionError, parse_number
from .operators import PRECEDENCE, offset_in_infix
from .parsing import is_slot


# Maximum bits of numerator and denominator of an exact value. Below 1024, exact values convert to finite floats, and
# only 0 converts to 0.
MAX_BITS = 1000

Number = Fraction | float
_COMPUTE = {"+": operators.add, "-": operators.sub, "*": operators.mul, "/": operators.truediv}


def evaluate_postfix(
    tokens: Sequence[str],
    numbers: Sequence[str | Number] | None = None,
    steps: list[tuple[str, Number, Number, Number]] | None = None,
) -> Number:
    """
    Compute the value of a tree in postfix order ([`Expression.evaluate`]). If `steps` is given, each operation is
    appended to it as `(operator, left operand, right operand, result)`.
    """
    stack: list[Number] = []
    for index, token in enumerate(tokens):
        try:
            if token in PRECEDENCE:
                right, left = stack.pop(), stack.pop()
                stack.append(_apply(token, left, right))
                if steps is not None:
                    steps.append((token, left, right, stack[-1]))
            elif is_slot(token):
                stack.append(_slot_value(token, numbers))
            else:
                stack.append(parse_number(token))
        except ExpressionError as error:
            raise ExpressionError(error.reason, offset_in_infix(tokens, index), token) from error
    return stack.pop()


def _slot_value(slot: str, numbers: Sequence[str | Number] | None) -> Number:
    index = int(slot[1:])
    if numbers is None or index >= len(numbers):
        given = 0 if numbers is None else len(numbers)
        raise ExpressionError(f"the slot has no number: only {given} numbers were passed", token=slot)
    number = numbers[index]
    if isinstance(number, str):
        return parse_number(number)
    if isinstance(number, float):
        return _finite(number, slot)
    try:
        value = Fraction(number)
    except (TypeError, ValueError, OverflowError) as error:
        raise ExpressionError(f"a slot needs a literal or a finite real number, not {number!r}", token=slot) from error
    return _bounded(value, slot)


def _apply(operator: str, left: Number, right: Number) -> Number:
    if operator == "^":
        return _power(left, right)
    if operator == "/" and not right:
        raise ExpressionError("division by zero", token=operator)
    if isinstance(left, float) or isinstance(right, float):
        left, right = float(left), float(right)
    value = _COMPUTE[operator](left, right)
    if not isinstance(value, float):
        return _bounded(value, operator)
    if not value and left and right and operator in ("*", "/"):
        raise ExpressionError("the result is too small", token=operator)
    return _finite(value, operator)


def _bounded(value: Fraction, token: str) -> Number:
    """Convert a value to a float if numerator or denominator has more than `MAX_BITS` bits."""
    if value.numerator.bit_length() <= MAX_BITS and value.denominator.bit_length() <= MAX_BITS:
        return value
    return _as_float(lambda: value.numerator / value.denominator, token, value != 0)


def _finite(value: float, token: str) -> float:
    if math.isfinite(value):
        return value
    raise ExpressionError("the result is too large", token=token)


def _as_float(compute: Callable[[], float], token: str, nonzero: bool) -> float:
    try:
        value = _finite(compute(), token)
    except OverflowError as error:
        raise ExpressionError("the result is too large", token=token) from error
    if nonzero and not value:
        raise ExpressionError("the result is too small", token=token)
    return value


def _power(base: Number, exponent: Number) -> Number:
    """
    Compute a power, exactly if the exponent is an integer and the result has at most `MAX_BITS` bits. `0^0` is 1.
    Raises `ExpressionError` for a negative base with a fractional exponent.
    """
    if not base:
        if exponent < 0:
            raise ExpressionError("division by zero: a negative power of 0", token="^")
        return Fraction(int(not exponent))
    is_integer = exponent == math.floor(exponent)
    if base < 0 and not is_integer:
        raise ExpressionError("the result is complex: a fractional power of a negative number", token="^")
    if is_integer and isinstance(base, Fraction):
        exact = int(exponent)
        if abs(base) == 1:
            return base if exact % 2 else Fraction(1)
        bits = max(base.numerator.bit_length(), base.denominator.bit_length())
        if bits * abs(exact) <= MAX_BITS:
            return base**exact
    magnitude = _as_float(lambda: math.pow(abs(base), exponent), "^", True)
    return -magnitude if base < 0 and int(exponent) % 2 else magnitude
