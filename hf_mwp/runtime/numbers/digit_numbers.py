"""Numbers in digits, with signs, bare fractions and scientific notation: search, and conversion to literals."""

import re
from collections.abc import Iterator
from fractions import Fraction
from itertools import pairwise

from hf_mwp.runtime.expressions.numbers import (
    MAX_NUMBER_LENGTH,
    VULGAR,
    VULGAR_PATTERN,
    ExpressionError,
    literal_of,
    parse_number,
    to_half_width,
    vulgar_literal,
)


_MINUS = "−–﹣－-"  # for use at the end of a character class
_CURRENCY = "$€£¥￥"
_SIGN_BEFORE = re.compile(rf"[{_MINUS}]\s?[{_CURRENCY}]?(?=[\d(（.\\{VULGAR}])")
# Ways to write a number, and its literal.
_WRITTEN = {
    re.compile(r"(?:(\d+)(?:\s?又\s?|\s| and ))?(\d+) ?[/／⁄] ?(\d+)"): r"\1(\2/\3)",
    re.compile(r"(?:(\d+)\s?又\s?)?(\d+)分之(\d+)"): r"\1(\3/\2)",
    re.compile(r"(\d*)(?:\s?又\s?)?\\[dt]?frac\{(\d+)\}\{(\d+)\}"): r"\1(\2/\3)",
    re.compile(r"(\d+)\D+half"): r"\1(1/2)",
    re.compile(r"百分之(\d+(?:[.．]\d+)?)|(.+?)\s?\\[%％]"): r"\1\2%",
}
_SCIENTIFIC = re.compile(r"([\d,]+(?:\.\d+)?)[eE]([-+]?\d{1,9})", flags=re.ASCII)

_FRACTION = r"(?:[(（]\d+[/／](?![0０]+[)）])\d+[)）]|\\[dt]?frac\{\d+\}\{(?!0+\})\d+\})"
_IN_WORDS = {
    "en": r"\d+(?:\sand\s|-and-)(?:a|one)[\s-]half\b(?![\s-](?:a\s)?dozen)",
    "zh": r"百分之\d+(?:[.．]\d+)?|(?:\d+\s?又\s?)?(?![0０]+分)\d+分之\d+",
}
# In English, a percent sign follows without a space, because the equations of MAWPS have `12*0.01` for "12 %".
_PERCENT = {"en": r"\\?[%％]", "zh": r"(?:\\?[%％]|\s\\?[%％](?!\s?[\d(（]))"}
# The lookahead rejects most characters before the alternatives are tried.
_PATTERN = {
    language: re.compile(
        rf"(?=[\d(（.\\百{VULGAR}])(?:{_IN_WORDS[language]}|(?:\d+(?:\s?又\s?)?)?{_FRACTION}"
        rf"|(?:\d{{1,3}}(?:(?:,\d{{3}})+|(?: \d{{3}}){{0,4}} 000)(?!\d)|\d+)"
        rf"(?:\s?[{VULGAR}]|(?:[.．]\d+)?(?:{percent}|[eE][-+]?\d+(?![0-9A-Za-z_]))?)"
        rf"|(?<![\w.])\.\d+{percent}?|[{VULGAR}])"
    )
    for language, percent in _PERCENT.items()
}
_SLASH = "/／⁄"
_HAS_SLASH = re.compile(f"[{_SLASH}]")
_HAS_MINUS = re.compile(f"[{_MINUS}]")
_REACH = 24  # number of characters before a number that are searched for context

# Bare fractions have at most three digits over four digits, which excludes 2019/2020 and 33333/66666.
_BARE_FRACTION = {
    "en": re.compile(rf"\d{{1,3}}[{_SLASH}](?!0)\d{{1,4}}"),
    "zh": re.compile(rf"\d{{1,3}} ?[{_SLASH}] ?(?!0)\d{{1,4}}"),
}
_MIXED = re.compile(rf"\d{{1,3}}(?:[ \u3000\xa0]|\s?又\s?|( and ))\d+[{_SLASH}]\d+")
_PAIR_BEFORE = re.compile(r"\b(?:(?:sum|difference|product|quotient|ratio) of|between|add|multiply) \Z", re.IGNORECASE)
_OPERATORS = f"=＝<>＜＞≤≥+＋*×✕∗·⋅^÷□{_SLASH}"
_OPERATOR_BEFORE = re.compile(rf"(?:[{_OPERATORS}{_MINUS}]\s*|[A-Za-z_])\Z")
_OPERATOR_BEHIND = re.compile(rf"\s*(?:[{_OPERATORS}]|[{_MINUS}]\s*[\d(（])|[xyzXYZ](?![A-Za-z])")
_DIVISION_BEFORE = re.compile(
    r"(?:\b(?:calculate|compute|evaluate|divide|quotient of|remainder of)|[算式]|除法)[\s：:]*\Z", re.IGNORECASE
)
_DIVISION_BEHIND = re.compile(
    r"\s*+(?:[，,]?\s*+(?:所得|得到)?的?\s*+(?:商|余|得数|结果|简便)|得|[，,]?\s*+再\s*[加减乘除]"
    r"|[与和]\s*\d+(?:[.．]\d+)?\s*的\s*[和差积]|中[，,].{0,4}除数)"
)

# The exponent of a unit is no number: 24 cm2, 24 cm^2.
_UNIT_BEFORE = re.compile(r"(?<![A-Za-z])[cdkm]?m\^?\Z")
_MINUS_BEFORE = re.compile(rf"[{_MINUS}]\s?[{_CURRENCY}]?\Z")
# The thermometer shows -8 degrees. 5 -8 degrees is an interval.
_LONE_MINUS = re.compile(rf"(?<![\d\s])[^\S\r\n][{_MINUS}]\Z")
_DEGREES = re.compile(r"\s?(?:degrees?\b|[°℃℉度])")
_SIGN = re.compile(
    rf"(?:(?:\A|[\n\r]|[.!?]\s)\s*[{_MINUS}]|[A-Z]{{2}} [{_MINUS}](?=[{_CURRENCY}])"
    rf"|(?:[(（\[【{{｛〔=＝<>＜＞≤≥*×÷/／^，,、；;。！？：:]"
    r"|[是为作得到达着至于进从比的上以温度高低约拔额在]|[到达降升得]了|加|减去?|乘|表示|[与及]|(?<!的)(?<!的 )和"
    rf"|(?<!\d)(?<!\d\s)[{_CURRENCY}]|[\w)）%％]\s?(?:[+＋]|[{_MINUS}]\s)|\b(?:about|around|only|now|over|below|above"
    r"|reach(?:ed|es)|shows?|showed|as|is|are|was|were|be|of|and|or|to|by|from|between|than|at|with|equals?|plus|minus"
    r"|times|reads?|add(?:ed|ing)?|subtract(?:ed|ing)?|multipl(?:y|ied)|divided?|temperatures?|g[eo]ts?|gives?)[^\S\r\n])"
    rf"[^\S\r\n]?[{_MINUS}]\s?)[{_CURRENCY}]?\Z",
    re.IGNORECASE,
)


def find_digit_numbers(text: str, language: str) -> Iterator[tuple[int, int, Fraction | None]]:
    """Yield start, end and value of each number in digits. The value is `None` if number or exponent is too large."""
    spans = []
    for match in _PATTERN[language].finditer(text):
        start, end = match.span()
        if not _is_exponent(text, start, end):
            spans.append((start, end))
    if len(spans) > 1 and _HAS_SLASH.search(text):
        spans = _join_fractions(text, spans, language)
    if spans and _HAS_MINUS.search(text):
        spans = [(_start_of_sign(text, start, end), end) for start, end in spans]
    for start, end in spans:
        try:
            value = parse_number(literal_in_digits(text[start:end]))
        except ExpressionError:
            value = None
        yield start, end, value


def _is_exponent(text: str, start: int, end: int) -> bool:
    return text[start:end] in ("2", "3") and _UNIT_BEFORE.search(text, max(0, start - _REACH), start) is not None


def _join_fractions(text: str, spans: list[tuple[int, int]], language: str) -> list[tuple[int, int]]:
    """Merge the spans of the numerator, the denominator and the whole part of each bare fraction."""
    joined: list[tuple[int, int]] = []
    last_denominator = None
    for numerator, next_span in pairwise([*spans, (len(text), len(text))]):
        if numerator == last_denominator:
            continue
        start, end = next_span
        # Without a percent sign: 5 1/2% is a mixed number.
        if text.endswith(("%", "％"), start, end):
            end -= 1
        denominator = (start, end)
        if not _is_fraction(text, numerator, denominator, language):
            joined.append(numerator)
            continue
        last_denominator = next_span
        start = numerator[0]
        if joined and _is_mixed(text, joined[-1], numerator, denominator):
            start = joined.pop()[0]
        joined.append((start, end))
    return joined


def _is_fraction(text: str, numerator: tuple[int, int], denominator: tuple[int, int], language: str) -> bool:
    start = numerator[0]
    end = denominator[1]
    if not _BARE_FRACTION[language].fullmatch(text, start, end):
        return False
    reach = max(0, start - _REACH)
    if _OPERATOR_BEFORE.search(text, reach, start) and _start_of_sign(text, start, end) == start:
        return False
    return not (
        _OPERATOR_BEHIND.match(text, end)
        or _DIVISION_BEFORE.search(text, reach, start)
        or _DIVISION_BEHIND.match(text, end)
    )


def _is_mixed(text: str, whole: tuple[int, int], numerator: tuple[int, int], denominator: tuple[int, int]) -> bool:
    """Return whether `whole` and a fraction below 1 are a mixed number, with a space, 又 or "and" between them."""
    mixed = _MIXED.match(text, whole[0])
    if mixed is None or mixed.end() != denominator[1]:
        return False
    if int(text[slice(*numerator)]) >= int(text[slice(*denominator)]):
        return False
    return not (mixed[1] and _PAIR_BEFORE.search(text, max(0, whole[0] - _REACH), whole[0]))


def _start_of_sign(text: str, start: int, end: int) -> int:
    """Return the start of the minus sign before a number, or `start` if there is no sign."""
    reach = max(0, start - _REACH)
    minus = _MINUS_BEFORE.search(text, reach, start)
    if minus is None:
        return start
    is_temperature = _DEGREES.match(text, end) is not None and _LONE_MINUS.search(text, reach, start) is not None
    if is_temperature or _SIGN.search(text, reach, start):
        return minus.start()
    return start


def literal_in_digits(written: str) -> str:
    """Convert digits to a literal: `1/2` to `(1/2)`, `1½` to `1(1/2)`, `1.5e3` to `1500`, `− 4` and `-$4` to `-4`."""
    sign = _SIGN_BEFORE.match(written)
    if sign is not None:
        return "-" + to_half_width(literal_in_digits(written[sign.end() :]))
    for pattern, literal in _WRITTEN.items():
        match = pattern.fullmatch(written)
        if match is not None:
            return to_half_width(match.expand(literal))
    vulgar = VULGAR_PATTERN.fullmatch(written)
    if vulgar is not None:
        return vulgar_literal(vulgar)
    scientific = _SCIENTIFIC.fullmatch(written)
    if scientific is not None:
        mantissa, exponent = scientific.groups()
        if abs(int(exponent)) >= MAX_NUMBER_LENGTH:
            raise ExpressionError(f"an exponent must be below {MAX_NUMBER_LENGTH}", token=written)
        return literal_of(Fraction(mantissa.replace(",", "")) * Fraction(10) ** int(exponent))
    return "".join(written.split()).replace("又", "")
