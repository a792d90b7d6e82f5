"""The value of an answer as the data sets write it."""

import re
from fractions import Fraction

from ..expressions import NUMBER_PATTERN, Expression, ExpressionError, parse_number
from ..expressions.numbers import to_half_width


# Math23k writes fractions ((7)/(4)) and mixed numbers 7((2)/(3)).
_MATH23K_FRACTION = re.compile(r"\(\((\d+)\)/\((\d+)\)\)", flags=re.ASCII)
_MIXED = re.compile(r"-?\d+\(\d+/\d+\)", flags=re.ASCII)
_ARITHMETIC = re.compile(r"[-+*/^:().%\d\s]+", flags=re.ASCII)
_NUMBER = re.compile(rf"(-?)(?:(\d+/0*[1-9]\d*)|({NUMBER_PATTERN.pattern}))", flags=re.ASCII)
_MAX_LENGTH = 1000


def answer_value(answer: str) -> Fraction | float | None:
    """
    The value of an annotated answer.

    Read as a whole if it is arithmetic: `20`, `880.0`, `10%`, `(11/20)`, `((7)/(4))`, `1/2`, the ratio `3:2`, and the
    mixed numbers `7((2)/(3))` and `23(1/3)`. Otherwise the first number in it counts: 9 in `9 (apples)`, 7 in `7 r4`,
    5 in `[5, 3]`, `5;3` and `x=5`.

    Args:
        answer (`str`):
            The answer as written; what comes after 1,000 characters is not read.

    Returns:
        `Fraction` or `float`, or `None` if there is no number in it.
    """
    text = _MATH23K_FRACTION.sub(r"(\1/\2)", to_half_width(answer[:_MAX_LENGTH])).strip()
    # Only a literal puts a number before a bracket; the expression parser wants an operator there.
    if _ARITHMETIC.fullmatch(text) and not _MIXED.fullmatch(text):
        try:
            return Expression.from_infix(text).evaluate()
        except ExpressionError:
            pass
    number = _NUMBER.search(text)
    if number is None:
        return None
    sign, fraction, literal = number.groups()
    try:
        value = Fraction(fraction) if fraction else parse_number(literal)
    except ExpressionError:
        return None
    return -value if sign else value
