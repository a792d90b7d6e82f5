"""Math word problems: their numbers found and masked, their equations aligned with the text. Needs no torch."""

from .answer import answer_value
from .errors import ProblemError
from .masked_text import MaskedText, mask_numbers
from .math_word_problem import MathWordProblem
from .number_finding import find_numbers
from .number_mention import NumberMention


__all__ = [
    "MaskedText",
    "MathWordProblem",
    "NumberMention",
    "ProblemError",
    "answer_value",
    "find_numbers",
    "mask_numbers",
]
