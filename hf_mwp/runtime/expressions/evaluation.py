"""Evaluation of expressions: exact while numerator and denominator are short, otherwise in floating point."""

import math
import operator as operators
from collections.abc import Sequence
from fractions import Fraction
from typing import NamedTuple

from .numbers import ExpressionError, is_slot, parse_number
from .operators import MARK, PRECEDENCE, infix_from_postfix


# Maximum bits of numerator and denominator. Below 1024, exact values are finite floats, and only 0 converts to 0.
MAX_BITS = 1000

Number = Fraction | float


class Step(NamedTuple):
    """Operation of an evaluated tree."""

    operator: str
    left: Number
    right: Number
    result: Number


_COMPUTE = {"+": operators.add, "-": operators.sub, "*": operators.mul, "/": operators.truediv}


def evaluate_postfix(
    tokens: Sequence[str], numbers: Sequence[str | Number] | None = None, steps: list[Step] | None = None
) -> Number:
    """Compute the value of a postfix tree ([`Expression.evaluate`]). Operations are appended to `steps`, if given."""
    stack = []
    for index, token in enumerate(tokens):
        try:
            if token in PRECEDENCE:
                right = stack.pop()
                left = stack.pop()
                value = _apply(token, left, right)
                if steps is not None:
                    steps.append(Step(token, left, right, value))
            elif is_slot(token):
                value = _slot_value(token, numbers or ())
            else:
                value = parse_number(token)
            stack.append(value)
        except (ExpressionError, OverflowError) as error:
            reason = error.reason if isinstance(error, ExpressionError) else "the result is too large"
            raise ExpressionError(reason, infix_from_postfix(tokens, index).index(MARK), token) from error
    return stack.pop()


def _slot_value(slot: str, numbers: Sequence[str | Number]) -> Number:
    index = int(slot[1:])
    if index >= len(numbers):
        raise ExpressionError(f"the slot has no number: only {len(numbers)} numbers were passed")
    number = numbers[index]
    if isinstance(number, str):
        return parse_number(number)
    return _finite(number) if isinstance(number, float) else _bounded(Fraction(number))


def _apply(operator: str, left: Number, right: Number) -> Number:
    if operator == "^":
        return _power(left, right)
    if operator == "/" and not right:
        raise ExpressionError("division by zero")
    value = _COMPUTE[operator](left, right)
    if isinstance(value, Fraction):
        return _bounded(value)
    if not value and left and right and operator in "*/":
        raise ExpressionError("the result is too small")
    return _finite(value)


def _bounded(value: Fraction) -> Number:
    """Convert a value to a float if numerator or denominator has more than `MAX_BITS` bits."""
    if value.numerator.bit_length() <= MAX_BITS and value.denominator.bit_length() <= MAX_BITS:
        return value
    rounded = value.numerator / value.denominator
    if not rounded:
        raise ExpressionError("the result is too small")
    return rounded


def _finite(value: float) -> float:
    if not math.isfinite(value):
        raise OverflowError
    return value


def _power(base: Number, exponent: Number) -> Number:
    """Compute a power, exactly if the exponent is an integer and the result is short enough. `0^0` is 1."""
    if not base:
        if exponent < 0:
            raise ExpressionError("division by zero: a negative power of 0")
        return Fraction(int(not exponent))
    is_integer = exponent == math.floor(exponent)
    if base < 0 and not is_integer:
        raise ExpressionError("the result is complex: a fractional power of a negative number")
    if is_integer and isinstance(base, Fraction):
        exact = int(exponent)
        if abs(base) == 1:
            return base if exact % 2 else Fraction(1)
        bits = max(base.numerator.bit_length(), base.denominator.bit_length())
        if bits * abs(exact) <= MAX_BITS:
            return base**exact
    magnitude = math.pow(abs(base), exponent)
    if not magnitude:
        raise ExpressionError("the result is too small")
    return -magnitude if base < 0 and int(exponent) % 2 else magnitude
