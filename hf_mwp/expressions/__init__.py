"""Arithmetic expressions: trees, the data sets' dialects, exact bounded evaluation. Needs no torch."""

from .drawing import draw
from .errors import ExpressionError
from .expression import Expression
from .numbers import NUMBER_PATTERN, normalize_number, parse_number
from .operators import OPERATORS


__all__ = [
    "NUMBER_PATTERN",
    "OPERATORS",
    "Expression",
    "ExpressionError",
    "draw",
    "normalize_number",
    "parse_number",
]
