"""Math word problems: numbers, equations, part-of-speech tags and augmentation. Does not import torch."""

from .answer import answer_half_unit, answer_value
from .distractors import add_distractors
from .english_comparisons import compare_counts
from .keywords import find_keywords
from .math_word_problem import MathWordProblem, ProblemError, refusal
from .numbers.masked_text import MaskedText, NumberMention, find_numbers, mask_numbers
from .reverse_operations import reverse_operations
from .step_questions import ask_steps
from .tagging import JiebaTagger, LtpTagger, PosTagger, load_tagger
from .tagging.pos_tagger import TaggedWord


__all__ = [
    "JiebaTagger",
    "LtpTagger",
    "MaskedText",
    "MathWordProblem",
    "NumberMention",
    "PosTagger",
    "ProblemError",
    "TaggedWord",
    "add_distractors",
    "answer_half_unit",
    "answer_value",
    "ask_steps",
    "compare_counts",
    "find_keywords",
    "find_numbers",
    "load_tagger",
    "mask_numbers",
    "refusal",
    "reverse_operations",
]
