"""
Math word problems: their numbers found and masked, their equations aligned with the text; parts of speech. Needs no
torch.
"""

from .answer import answer_half_unit, answer_value
from .errors import ProblemError
from .jieba_tagger import JiebaTagger
from .keywords import KeywordGroup, find_keywords, keyword_groups
from .ltp_tagger import LtpTagger
from .masked_text import MaskedText, mask_numbers
from .math_word_problem import MathWordProblem
from .number_finding import find_numbers
from .number_mention import NumberMention
from .pos_tagger import PosTagger, load_tagger
from .refusal import refusal
from .tagged_word import TaggedWord


__all__ = [
    "JiebaTagger",
    "KeywordGroup",
    "LtpTagger",
    "MaskedText",
    "MathWordProblem",
    "NumberMention",
    "PosTagger",
    "ProblemError",
    "TaggedWord",
    "answer_half_unit",
    "answer_value",
    "find_keywords",
    "find_numbers",
    "keyword_groups",
    "load_tagger",
    "mask_numbers",
    "refusal",
]
