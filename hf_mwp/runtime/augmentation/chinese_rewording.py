"""Rules that reword Chinese problems as reverse-operation problems."""

import re
from fractions import Fraction

from hf_mwp.runtime.expressions.numbers import literal_of
from hf_mwp.runtime.numbers.number_mention import NumberMention
from hf_mwp.runtime.problems.clauses import UNITS, find_question_words, split_clauses


_ENDS = re.compile(r"[，,．。；;？?！!：\s]+$")
# Beginnings that occur only in questions.
_BEGINS = re.compile(r"^(?:求|问|请问|那么|则|请你算一算|算一算|请|你知道|想一想)[，,：]?")
# Characters next to numbers in ordinals, lists, ratios, ranges and dates.
_BEFORE = tuple("第、:：-~～—至到")
_AFTER = tuple("、:：-~～—至到月日号")


def answer_in_chinese(value: Fraction, answer: str, text: str) -> str | None:
    """Write the answer as a number in the text, as a percentage if `answer` is one or the question asks for one."""
    if "%" not in answer and "百分之几" not in text:
        return literal_of(value)
    percentage = literal_of(100 * value)
    if "/" in percentage:
        return None
    return f"{percentage}%"


def reword_chinese(text: str, mention: NumberMention, answer: str) -> str | None:
    """Return a text that states the answer and asks for a number, or `None` if no rule applies. The last clause, with
    the only question word, becomes a statement; the clause with the number becomes the question, at the end."""
    clauses = split_clauses(text)
    question_words = find_question_words(text)
    if len(question_words) != 1 or not _can_be_asked(text, mention):
        return None
    word_start, word_end = question_words[0]
    if word_start < clauses[-1][0]:
        return None
    unknown = "多少"
    if mention.is_percent:
        unknown = "百分之几"
    elif "/" in mention.literal and not text.startswith(tuple(UNITS), mention.end):
        unknown = "几分之几"
    # The answer to 多少钱 has the unit 元.
    if text.startswith("钱", word_end):
        word_end += 1
        answer += "元"
    # From right to left, so that the offsets stay valid.
    edits = sorted([(word_start, word_end, answer), (mention.start, mention.end, unknown)], reverse=True)
    rest = ""
    statement = ""
    question = ""
    for clause_start, clause_end in clauses:
        clause = text[clause_start:clause_end]
        for start, end, new in edits:
            if clause_start <= start < clause_end:
                clause = clause[: start - clause_start] + new + clause[end - clause_start :]
        if clause_start <= mention.start < clause_end:
            question = _ENDS.sub("", clause)
        elif clause_start <= word_start < clause_end:
            statement = _BEGINS.sub("", _ENDS.sub("", clause)) + "，"
        else:
            rest += clause
    return f"{rest}{statement}{question}？"


def _can_be_asked(text: str, mention: NumberMention) -> bool:
    is_year = text.startswith("年", mention.end) and 1900 < mention.value < 2100
    if mention.value <= 0 or is_year:
        return False
    return not text.endswith(_BEFORE, 0, mention.start) and not text.startswith(_AFTER, mention.end)
