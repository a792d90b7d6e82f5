"""Forms of numbers in texts of any language: LaTeX, groups of digits, marks, invisible characters."""

import re
import unicodedata
from fractions import Fraction

from .number_form import FormMatch, NumberForm, fraction_literal, no_number, number_match


_INVISIBLE_CHARACTERS = ("\u00ad", "\u200b", "\u200c", "\u200d", "\u2060", "\ufeff")
_INVISIBLE = "".join(_INVISIBLE_CHARACTERS)
_NARROW_SPACE = "\u00a0\u2007-\u2009\u202f"


def _latex_fraction(match: re.Match[str], text: str) -> FormMatch | None:
    whole = int(match["whole"] or 0)
    numerator = int(match["numerator"].strip("{} "))
    denominator = int(match["denominator"].strip("{} "))
    return _fraction_match(match, whole, numerator, denominator)


def _slash_fraction(match: re.Match[str], text: str) -> FormMatch | None:
    return _fraction_match(match, 0, int(match[1]), int(match[2]))


def _fraction_match(match: re.Match[str], whole: int, numerator: int, denominator: int) -> FormMatch | None:
    if not denominator:
        return None
    literal = fraction_literal(whole, numerator, denominator)
    return number_match(match, whole + Fraction(numerator, denominator), literal)


def _grouped(match: re.Match[str], text: str) -> FormMatch:
    """`12'500`, `1{,}200`, `1,20,000`: the digits without the characters between them."""
    written, point, decimals = match[0].partition(".")
    digits = re.sub(r"\D", "", written)
    return number_match(match, Fraction(f"{digits}{point}{decimals}"))


def _with_invisible(match: re.Match[str], text: str) -> FormMatch | None:
    digits = re.sub(f"[{_INVISIBLE}]", "", match[0])
    if digits.count(".") > 1:
        return None
    return number_match(match, Fraction(digits))


def _marked(match: re.Match[str], text: str) -> FormMatch:
    return number_match(match, Fraction(match[2].replace(",", "")))


def _keycaps(match: re.Match[str], text: str) -> FormMatch:
    return number_match(match, int("".join(re.findall(r"\d", match[0]))))


def _circled(match: re.Match[str], text: str) -> FormMatch:
    return number_match(match, int(unicodedata.numeric(match[0])))


def _superscript_power(match: re.Match[str], text: str) -> FormMatch:
    exponent = int(unicodedata.normalize("NFKC", match["exponent"]))
    return number_match(match, Fraction(match["mantissa"]) * 10**exponent)


WRITTEN_FORMS = (
    NumberForm(
        "LaTeX fraction",
        re.compile(
            r"(?:(?<!\d)(?P<whole>\d{1,6})\s?)?\\[cdt]?frac\s?(?P<numerator>\{\s?\d{1,9}\s?\}|\d)\s?"
            r"(?P<denominator>\{\s?\d{1,9}\s?\}|\d)"
        ),
        _latex_fraction,
        "frac",
    ),
    NumberForm("division slash", re.compile(r"(?<![\d.])(\d{1,3})\s?∕\s?(\d{1,4})(?![\d.]\d)"), _slash_fraction, "∕"),
    NumberForm(
        "groups",
        re.compile(
            r"(?<![\d.,'’{])(?:\d{1,3}(?:(?:\{,\}\d{3}){1,5}|(?:\\,\d{3}){1,5}|(?:['’]\d{3}){1,5}"
            rf"|(?:[{_NARROW_SPACE}]\d{{3}}){{1,5}})|\d{{1,2}}(?:,\d\d){{1,4}},\d{{3}})(?:\.\d{{1,6}})?(?![\d,'’])"
        ),
        _grouped,
        at_digits=True,
    ),
    NumberForm(
        "invisible characters",
        re.compile(rf"(?<![\d.])\d{{1,12}}\.?(?:[{_INVISIBLE}]{{1,3}}[\d.]{{1,9}}){{1,6}}(?<=\d)(?![\d.]\d)"),
        _with_invisible,
        " ".join(_INVISIBLE_CHARACTERS),
        at_digits=True,
    ),
    NumberForm("keycaps", re.compile("(?:[0-9]\ufe0f?\u20e3){1,9}"), _keycaps, "\u20e3"),
    NumberForm("marks", re.compile(r"(\*\*|__)(\d{1,12}(?:\.\d{1,6})?)\1"), _marked, "** __"),
    NumberForm("circled numbers", re.compile(r"[\u3251-\u325f\u32b1-\u32bf](?=\s?[\u3400-\u9fffa-z])"), _circled),
    NumberForm(
        "powers of ten",
        re.compile(r"(?<![\d.])(?P<mantissa>\d{1,6}(?:\.\d{1,6})?)\s?[×xX]\s?10(?P<exponent>[⁰¹²³⁴-⁹]{1,2})"),
        _superscript_power,
        "10",
        at_digits=True,
    ),
    NumberForm(
        "exponents of units",
        re.compile(r"(?<![A-Za-z])(?:ft|in|yd|mi|[cdkm]?m)(?:\^\{?)?[23]\}?(?![\d.])", re.IGNORECASE),
        no_number,
        "t2 t3 t^ n2 n3 n^ d2 d3 d^ i2 i3 i^ m2 m3 m^",
    ),
    NumberForm("24/7", re.compile(r"(?<![\d/.])24/7(?![\d/.])"), no_number, "24/7"),
    # Numbers of list items before a problem: `1. `, `(2) `, 例5, 第3题.
    NumberForm(
        "list numbers",
        re.compile(
            r"\A\s{0,8}(?:例\s?\d{1,2}(?![\d元])[.．、：:]?|第\s?\d{1,3}\s?题[.．、：:]?"
            r"|(?:[Pp](?:age|g\.|\.)\s?\d{1,4}[,:]?\s)?"
            r"(?:[Ww]ord [Pp]roblem|[Qq]uestion|[Pp]roblem|[Ee]xercise|[Ee]x\.|[Tt]ask)"
            r"\s(?:[Nn]o\.\s?|#\s?)?\d{1,3}[a-h]?[.:)]?|(?:[Nn]o\.\s?|#)\d{1,3}[a-h]?[.:)]?\s"
            r"|\d{1,2}[a-h][.)]\s|\(\d{1,2}[a-h]\)\s"
            r"|[^.?!\n]{0,40}\b[Qq]\.?\s?\d{1,2}(?:[.:)]|\s(?=[A-Za-z]))|\d{1,3}\.\)\s"
            r"|(?:[Ww]orksheet|[Pp]age|[Uu]nit|[Hh]omework)\s\d{1,3}[,:]?\s(?:[Nn]o\.?|[Qq]|#)\s?\d{1,3}[.:)]?\s"
            r"|[Qq]?\d{1,3}[.．)）]\s{1,3}(?=\D)|[(（]\d{1,3}[)）]\s{0,3}(?=\D)|\d{1,2}[．.](?=[\u3400-\u9fff]))"
        ),
        no_number,
    ),
)
"""Forms that are read in each text."""
