"""Expression trees: parsing of the notations of datasets, and exact, bounded evaluation. Does not import torch."""

from .expression import Expression, draw
from .numbers import NUMBER_PATTERN, ExpressionError, normalize_number, parse_number
from .operators import OPERATORS


__all__ = ["NUMBER_PATTERN", "OPERATORS", "Expression", "ExpressionError", "draw", "normalize_number", "parse_number"]
