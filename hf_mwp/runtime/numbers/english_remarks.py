"""Remarks beside English problems, whose numbers are not of the problem: i got 18 but the answer key says 30."""

import re

from .english_numbers import IGNORE_CASE, NUMBER
from .number_form import FormMatch, NumberForm, is_behind_the_question, no_number


_QUESTION = re.compile(r"\bhow (?:many|much|old|long|far|tall)\b[^?!.]{1,150}[?!.]\s|\?\s", re.IGNORECASE)
# "What am I doing wrong?" asks for no number.
_LATER_QUESTION = re.compile(r"\bhow (?:many|much|old|long|far|tall)\b|\bfind\b", re.IGNORECASE)
_RELATIVE = "son|daughter|kid|child|boy|girl|teacher|book|answer|answer key|friend"
_PERSON = rf"(?:i|we|he|she|they|(?:my|the|her|his|our)\s(?:{_RELATIVE}))"
_CLAIM = r"(?:got|get|gets|keeps? getting|says?|said|wrote|put|was|is|thinks?)"


def _remark(match: re.Match[str], text: str) -> FormMatch | None:
    """My answer was 101.11: no number behind the question, and before no other question."""
    if not is_behind_the_question(match, text, _QUESTION, _LATER_QUESTION):
        return None
    return no_number(match, text)


ENGLISH_REMARKS = (
    NumberForm(
        "answers in remarks",
        re.compile(
            rf"\b{_PERSON}\s(?:keeps?\s|only\s|just\s)?{_CLAIM}\s(?:it'?s\s|it is\s|that\s|for (?:it|this)\s)?"
            rf"\$?{NUMBER}",
            IGNORE_CASE,
        ),
        _remark,
        "got get say said wrote put was is think",
    ),
    NumberForm("this 1", re.compile(r"\b(?:this|that) 1(?=\s?[,.!?:;]|\s*\Z)", IGNORE_CASE), no_number, "1"),
)
"""Forms that are no numbers of a problem. They come before all other forms."""
