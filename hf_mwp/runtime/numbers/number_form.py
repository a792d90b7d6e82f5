"""Forms of numbers beyond plain digits and number words, and the search for them in a text."""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

from hf_mwp.runtime.expressions.numbers import literal_of, to_half_width


CONTEXT = 200  # number of characters around a number, or at the end of the text, that are searched for context
_MAX_REST = 1000  # number of characters behind a remark that are searched for a question
_DIGITS = re.compile(r"\d+")
_MISREAD = str.maketrans("lI|丨｜ｌＩoOＯ〇·•‧・", "11111110000....")


@dataclass(frozen=True)
class FormMatch:
    """A number in a special form, with its position."""

    start: int  # offset of its first character
    end: int  # offset after its last character
    value: Fraction | None  # exact; `None` for digits that are no number, such as those of `MP3`
    literal: str = ""  # for expressions
    unit: str = ""  # words inside the number that remain in the masked text, behind the placeholder
    note: str = ""  # why the reading is uncertain, or empty


Read = Callable[[re.Match[str], str], FormMatch | None]


@dataclass(frozen=True)
class NumberForm:
    """One way to write numbers.

    Args:
        name (`str`): Name of the form in the guide.
        pattern (`re.Pattern`): Candidates. All repetitions are bounded, so that the search takes linear time.
        read (`Callable`): Returns the number of a match in a text, or `None` if the match is not of this form.
        signs (`str`): Characters or words in lower case, separated by spaces, of which the text in lower case must
            contain one. They spare most texts the search for the pattern.
        at_digits (`bool`): Whether each match begins with digits, and does not begin inside of a longer sequence of
            digits. Then the pattern is tried at the beginning of each sequence only, of which a text has few.
    """

    name: str
    pattern: re.Pattern[str]
    read: Read
    signs: str = ""
    at_digits: bool = False

    @cached_property
    def sign_list(self) -> list[str]:
        """Return the signs; an empty list if any text may have numbers of this form."""
        return self.signs.split()

    def may_be_in(self, lowered_text: str) -> bool:
        """Return whether a text in lower case has one of the signs, or there are none."""
        if not self.sign_list:
            return True
        for sign in self.sign_list:
            if sign in lowered_text:
                return True
        return False

    def find(self, text: str, digit_starts: Sequence[int]) -> list[FormMatch]:
        """Return the numbers of this form in a text, given the offsets at which its sequences of digits begin."""
        matches = []
        for candidate in self._candidates(text, digit_starts):
            match = self.read(candidate, text)
            if match is not None:
                matches.append(match)
        return matches

    def _candidates(self, text: str, digit_starts: Sequence[int]) -> Iterable[re.Match[str]]:
        """Return the matches of the pattern, from left to right, which do not overlap."""
        if not self.at_digits:
            return self.pattern.finditer(text)
        candidates = []
        end = 0
        for start in digit_starts:
            candidate = self.pattern.match(text, start)
            if candidate is not None and start >= end:
                candidates.append(candidate)
                end = candidate.end()
        return candidates


def find_forms(text: str, forms: Iterable[NumberForm]) -> list[FormMatch]:
    """Return the numbers in the given forms, from left to right. Where two overlap, the earlier form counts."""
    matches: list[FormMatch] = []
    covered = bytearray(len(text))
    lowered_text = text.lower()
    digit_starts = [digits.start() for digits in _DIGITS.finditer(text)]
    for form in forms:
        if not form.may_be_in(lowered_text):
            continue
        for match in form.find(text, digit_starts):
            if any(covered[match.start : match.end]):
                continue
            covered[match.start : match.end] = b"\1" * (match.end - match.start)
            matches.append(match)
    return sorted(matches, key=lambda match: match.start)


def misread_number(match: re.Match[str], text: str) -> FormMatch:
    """Return the number of l2 or 1O: letters for digits, as text recognition writes them."""
    literal = to_half_width(match[0].translate(_MISREAD))
    return number_match(match, Fraction(literal), note=f"{match[0]} was read as {literal}")


def text_before(match: re.Match[str], text: str) -> str:
    """Return the characters before a match that are searched for context."""
    return text[max(0, match.start() - CONTEXT) : match.start()]


def text_beside(match: re.Match[str], text: str) -> str:
    """Return the characters on both sides of a match that are searched for context, without the match."""
    return text_before(match, text) + text[match.end() : match.end() + CONTEXT]


def text_around(match: re.Match[str], text: str) -> str:
    """Return a match with the characters on both sides that are searched for context."""
    return text[max(0, match.start() - CONTEXT) : match.end() + CONTEXT]


def asks_for(pattern: str, text: str) -> bool:
    """Return whether the end of a text, which has the question, contains a pattern in any case."""
    return re.search(pattern, text[-CONTEXT:], re.IGNORECASE) is not None


def unit_names(scales: Iterable[Mapping[str, Any]]) -> str:
    """Return a pattern for the names of all units, the longest first. The names are the keys of the scales."""
    names = set().union(*scales)
    return "|".join(sorted(names, key=len, reverse=True))


def find_scale(scales: Iterable[Mapping[str, int]], large: str, small: str) -> Mapping[str, int] | None:
    """Return the scale that has both units, the first of them larger than the second, or `None`."""
    for scale in scales:
        if large in scale and small in scale and scale[large] > scale[small]:
            return scale
    return None


def number_match(
    match: re.Match[str],
    value: Fraction | int,
    literal: str | None = None,
    unit: str = "",
    note: str = "",
    group: int | str = 0,
) -> FormMatch:
    """Return the number that a match, or one of its groups, writes. By default, its literal is computed."""
    value = Fraction(value)
    start, end = match.span(group)
    if literal is None:
        literal = literal_of(value)
    return FormMatch(start, end, value, literal, unit, note)


def is_behind_the_question(
    match: re.Match[str], text: str, question: re.Pattern[str], later_question: re.Pattern[str]
) -> bool:
    """Return whether a match is behind a question, and before no later one."""
    if question.search(text_before(match, text)) is None:
        return False
    return later_question.search(text, match.end(), match.end() + _MAX_REST) is None


def no_number(match: re.Match[str], text: str) -> FormMatch:
    """Return the match as digits that are no number."""
    return FormMatch(*match.span(), None)


def percent_literal(percentage: Fraction) -> str:
    """Return the literal of a percentage: `12.5%` for 25/2."""
    literal = literal_of(percentage)
    if literal.startswith("("):
        return literal_of(percentage / 100)
    return f"{literal}%"


def fraction_literal(whole: int, numerator: int, denominator: int) -> str:
    """Return the literal of a mixed number or fraction as written: `1(3/6)`, `(3/6)`."""
    return f"{whole or ''}({numerator}/{denominator})"
