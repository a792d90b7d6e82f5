"""Forms of misprinted numbers in Chinese texts: 6 0千米, 3. 5元, 2。5元, 二0个, l2个."""

import re
from fractions import Fraction

from hf_mwp.runtime.expressions.numbers import to_half_width

from .chinese_numbers import DECIMALS, MEASURE, START, UNIT
from .number_form import FormMatch, NumberForm, misread_number, number_match, percent_literal


_ZEROS = str.maketrans("oOＯ", "000")


def _spaced(match: re.Match[str], text: str) -> FormMatch:
    """6 0千米, 2 5%: text recognition has split a number."""
    digits = "".join(to_half_width(match["digits"]).split())
    note = f"{match[0]} was read as {digits}{match['percent']}"
    value = Fraction(digits)
    if match["percent"]:
        return number_match(match, value / 100, percent_literal(value), note=note)
    return number_match(match, value, note=note)


def _spaced_decimal(match: re.Match[str], text: str) -> FormMatch:
    """3. 5元, 3 . 5元, 2。5元."""
    literal = f"{to_half_width(match['whole'])}.{to_half_width(match['decimals'])}"
    return number_match(match, Fraction(literal), note=f"{match[0]} was read as {literal}")


def _mixed_digits(match: re.Match[str], text: str) -> FormMatch:
    """二0个, 一〇五个: numerals as digits of a number."""
    literal = match[0].translate(_ZEROS).translate(DECIMALS)
    return number_match(match, int(literal), note=f"{match[0]} was read as {literal}")


CHINESE_MISPRINTS = (
    NumberForm(
        "spaces in a number",
        re.compile(
            r"(?<![\d.．,，、：: /／+＋×÷*=＝-])"
            rf"(?P<digits>\d{{1,3}} 0{{1,3}}(?=\s?{UNIT}|[%％])|\d{{1,2}} \d{{1,2}}(?=[%％]))(?P<percent>[%％]?)"
        ),
        _spaced,
    ),
    NumberForm(
        "spaces in a decimal",
        re.compile(
            r"(?<=[\u3400-\u9fff])(?<![例题第图表问])(?P<whole>\d{1,4})(?:[.．]\s|\s[.．]\s?|。)(?P<decimals>\d{1,2})"
            rf"(?=\s?(?:{MEASURE}|块))"
        ),
        _spaced_decimal,
        ". ． 。",
    ),
    NumberForm(
        "numerals as digits",
        re.compile(
            rf"{START}(?:[一二三四五六七八九][0oOＯ〇]{{1,2}}(?![\d.．])|[一二三四五六七八九][〇0零][一二三四五六七八九])(?!年代)(?={UNIT})"
        ),
        _mixed_digits,
        "0 o ｏ 〇 零",
    ),
    NumberForm(
        "text recognition",
        re.compile(
            rf"(?<![A-Za-z\d.．])(?:[lI|丨｜ｌＩ]\d{{1,4}}|\d{{1,3}}[oOＯ〇]{{1,3}}\d{{0,3}}"
            rf"|\d{{1,3}}[·•‧・]\d{{1,2}}(?!年))(?=\s?{UNIT})"
        ),
        misread_number,
        "l i | 丨 ｜ ｌ ｉ o ｏ 〇 · • ‧ ・",
    ),
)
