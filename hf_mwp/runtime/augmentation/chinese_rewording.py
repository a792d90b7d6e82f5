"""Rules that reword Chinese problems as reverse-operation problems."""

import re
from fractions import Fraction

from hf_mwp.runtime.numbers.digit_numbers import literal_of
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
    percent = literal_of(100 * value)
    return None if "/" in percent else f"{percent}%"


def reword_chinese(text: str, mention: NumberMention, answer: str) -> str | None:
    """Return a text that states the answer and asks for a number, or `None` if no rule applies. The last clause, with
    the only question word, becomes a statement; the clause with the number becomes the question, at the end."""
    *_, (start, stop) = clauses = split_clauses(text)
    asked = find_question_words(text)
    if len(asked) != 1 or not start <= asked[0][0] < stop or not _can_be_asked(text, mention):
        return None
    unknown = "多少"
    if mention.is_percent:
        unknown = "百分之几"
    elif "/" in mention.literal and not text.startswith(tuple(UNITS), mention.end):
        unknown = "几分之几"
    # The answer to 多少钱 has the unit 元.
    begin, end = asked[0][0], asked[0][1] + (text[asked[0][1] :][:1] == "钱")
    answer += "元" * (end - asked[0][1])
    edits = sorted([(begin, end, answer), (mention.start, mention.end, unknown)], reverse=True)
    rest, stated, question = [], [], ""
    for start, stop in clauses:
        clause = text[start:stop]
        for first, last, new in edits:
            if start <= first < stop:
                clause = clause[: first - start] + new + clause[last - start :]
        if start <= mention.start < stop:
            question = _ENDS.sub("", clause)
        elif start <= begin < stop:
            stated = [_BEGINS.sub("", _ENDS.sub("", clause)), "，"]
        else:
            rest.append(clause)
    return "".join([*rest, *stated, question, "？"])


def _can_be_asked(text: str, mention: NumberMention) -> bool:
    before, after = text[: mention.start][-1:], text[mention.end :][:1]
    is_year = after == "年" and 1900 < mention.value < 2100
    return mention.value > 0 and not is_year and before not in _BEFORE and after not in _AFTER
