"""Remarks beside English problems, whose numbers are not of the problem: i got 18 but the answer key says 30,
(2 marks), round to the nearest 10, A) 4 B) 6."""

import re

from .english_numbers import IGNORE_CASE, NUMBER
from .number_form import FormMatch, NumberForm, is_behind_the_question, no_number, text_beside


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


_ROUNDED = re.compile(r"\d|\b(?:result|sum|product|number)\b")


def _rounding(match: re.Match[str], text: str) -> FormMatch | None:
    """Round to the nearest 10: no number, but in a text without other numbers."""
    if not _ROUNDED.search(text_beside(match, text)):
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
    NumberForm(
        "decimal places",
        re.compile(
            rf"\b(?:to|with|use|in) {NUMBER} (?:decimal (?:places?|points?)|decimals|d\.?\s?p\b"
            r"|significant (?:figures?|digits?)|sig\.? figs?\b|s\.?f\b)",
            IGNORE_CASE,
        ),
        no_number,
        "decimal d.p dp sig s.f sf",
    ),
    NumberForm(
        "rounding",
        re.compile(
            r"(?:\A|(?<=[.?!(]\s)|(?<=[.?!(])|(?<=[a-z]\s))(?:please )?(?:give|round|write|state|express)"
            r" (?:(?:your|the|all|final) ){0,2}(?:answers? )?(?:correct )?(?:up |off |down )?to the nearest"
            r" (?:10{0,3}|1,000|ten|hundred|thousand|one|0\.0{0,2}1)(?![\d%]|[.,]\d)\b",
            IGNORE_CASE,
        ),
        _rounding,
        "nearest",
    ),
    NumberForm(
        "options",
        re.compile(
            rf"\(?[Aa][.):]\s?\$?{NUMBER}(?:\s?%|\s[a-z]{{1,12}})?[,;]?"
            rf"(?:\s{{1,3}}\(?[B-Fb-f][.):]\s?\$?{NUMBER}(?:\s?%|\s[a-z]{{1,12}})?[,;]?){{1,5}}\.?"
            r"(?=\s*(?:[(\[][^()\[\]]{1,12}[)\]])?\s*\Z)"
        ),
        no_number,
        "a) a. a:",
    ),
    NumberForm(
        "marks",
        re.compile(
            r"[(\[]\s?\d{1,2}\s?marks?\s?[)\]]|[(\[]\s?\d{1,2}\s?(?:points?|pts\.?|m)\s?[)\]](?=\s*\Z)", IGNORE_CASE
        ),
        no_number,
        "mark point pts m) m]",
    ),
    NumberForm("this 1", re.compile(r"\b(?:this|that) 1(?=\s?[,.!?:;]|\s*\Z)", IGNORE_CASE), no_number, "1"),
)
"""Forms that are no numbers of a problem. They come before all other forms."""
