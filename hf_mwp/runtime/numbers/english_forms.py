"""Forms of numbers in English texts: those of shares, amounts and times, and digits that are no numbers."""

import re
from fractions import Fraction

from .english_amounts import ENGLISH_AMOUNTS
from .english_hours import ENGLISH_HOURS
from .english_names import ENGLISH_NAMES
from .english_numbers import IGNORE_CASE, NUMBER, ONE_TO_NINE, after_words, number_of
from .english_numerals import BELOW_100, ONES, TENS
from .english_shares import ENGLISH_SHARES
from .english_times import ENGLISH_TIMES
from .number_form import FormMatch, NumberForm, misread_number, number_match


_MISSPELLED = {"fourty": 40, "fourtie": 40, "ninty": 90, "ninteen": 19, "fourten": 14, "twelf": 12, "eightteen": 18}


def _below_zero(match: re.Match[str], text: str) -> FormMatch:
    return number_match(match, -number_of(match["number"]), unit=match["unit"])


def _above_zero(match: re.Match[str], text: str) -> FormMatch:
    return number_match(match, number_of(match["number"]), unit=match["unit"])


def _negative(match: re.Match[str], text: str) -> FormMatch:
    return number_match(match, -number_of(match["number"]))


def _repeated(match: re.Match[str], text: str) -> FormMatch | None:
    """Five (5), 5 (five)."""
    value = number_of(match["word"] or match["word_behind"])
    if value != int(match["digits"] or match["digits_before"]):
        return None
    return number_match(match, value)


def _hyphenated(match: re.Match[str], text: str) -> FormMatch:
    """Twenty-four with a hyphen or dash outside of ASCII."""
    return number_match(match, number_of(match[0]))


def _misspelled(match: re.Match[str], text: str) -> FormMatch:
    value = _MISSPELLED[match["word"].lower()]
    if match["unit"]:
        value += ONES[match["unit"].lower()]
    return number_match(match, value, note=f"{match[0]} was read as {value}")


def _percent(match: re.Match[str], text: str) -> FormMatch:
    """12 pct, 60percent, 7 per cent: with the word that the solvers learned."""
    return number_match(match, number_of(match["number"]), unit=" percent")


def _half_percent(match: re.Match[str], text: str) -> FormMatch:
    """Half a percent."""
    return number_match(match, Fraction(1, 2), unit=" percent")


def _hundred(match: re.Match[str], text: str) -> FormMatch:
    """5 hundred; he has hundred dollars."""
    value = Fraction(100)
    if match["number"]:
        value *= int(match["number"])
    if match["rest"]:
        value += number_of(match["rest"])
    return number_match(match, value)


_BEFORE_ONE = 40  # number of characters before "has one"
_EACH = re.compile(r"\b(?:each|every)\b[^.?!]*\Z", re.IGNORECASE)


def _one(match: re.Match[str], text: str) -> FormMatch | None:
    """Kim had one cat. "Each teacher has one group" is no number of the calculation."""
    if _EACH.search(text, max(0, match.start() - _BEFORE_ONE), match.start()):
        return None
    return number_match(match, 1, group="one")


def _joined(match: re.Match[str], text: str) -> FormMatch:
    """1 250 seats, 1.250 euros, 3, 500 ants."""
    digits = re.sub("[ .,]", "", match[0])
    return number_match(match, int(digits), note=f"{match[0]} was read as {digits}")


_TENS = "|".join(TENS)

ENGLISH_FORMS = (
    *ENGLISH_SHARES,
    NumberForm(
        "below zero",
        re.compile(
            rf"(?<![\d.,-])(?P<number>{NUMBER})(?P<unit>(?:\s?(?:degrees?|°)(?:\s?[CF]\b|\s(?:Celsius|Fahrenheit))?)?)\s{{1,3}}below\s{{1,3}}zero\b",
            IGNORE_CASE,
        ),
        _below_zero,
        "below",
    ),
    NumberForm(
        "above zero",
        re.compile(
            rf"(?<![\d.,-])(?P<number>{NUMBER})(?P<unit>(?:\s?(?:degrees?|°)(?:\s?[CF]\b)?)?)\sabove\szero\b",
            IGNORE_CASE,
        ),
        _above_zero,
        "above",
    ),
    NumberForm(
        "negative",
        re.compile(
            rf"(?:\bnegative|(?:\A|(?<=\bis )|(?<=\bwas )|(?<=\bat )|(?<=\bto ))minus)\s(?P<number>{NUMBER})",
            IGNORE_CASE,
        ),
        _negative,
        "negative minus",
    ),
    NumberForm(
        "percent",
        re.compile(
            rf"\b(?P<number>{NUMBER})(?:\s?pct\b\.?|[\s-]per[\s-]cents?\b|-percent\b|\spercents\b|(?<=\d)percent\b)",
            IGNORE_CASE,
        ),
        _percent,
        "pct per",
    ),
    NumberForm(
        "half a percent", re.compile(r"\bhalf (?:a|of (?:a|one)) per ?cent\b", IGNORE_CASE), _half_percent, "cent"
    ),
    NumberForm(
        "hundreds",
        re.compile(
            rf"(?<![\d.,])(?P<number>[1-9]) hundred\b(?:\s(?:and\s)?(?P<rest>\d{{1,2}}(?![\d.,%]\d)|{BELOW_100}\b))?"
            r"(?!\s(?:thousand|million|billion)\b)"
            rf"|{after_words('has had have costs cost paid spent earns')}hundred(?= [a-z])"
        ),
        _hundred,
        "hundred",
    ),
    NumberForm(
        "word and digits",
        re.compile(
            rf"\b(?P<word>{BELOW_100})\s?\(\s?(?P<digits>\d{{1,3}})\s?\)"
            rf"|(?<![\d.,])(?P<digits_before>\d{{1,3}})\s?\(\s?(?P<word_behind>{BELOW_100})\s?\)",
            IGNORE_CASE,
        ),
        _repeated,
        "(",
    ),
    NumberForm(
        "hyphens",
        re.compile(rf"\b(?:{_TENS})[\u2010-\u2014](?:{ONE_TO_NINE})\b", re.IGNORECASE),
        _hyphenated,
        "\u2010 \u2011 \u2012 \u2013 \u2014",
    ),
    NumberForm(
        "misspelled words",
        re.compile(rf"\b(?P<word>{'|'.join(_MISSPELLED)})\b(?:[\s-](?P<unit>{ONE_TO_NINE})\b)?", IGNORE_CASE),
        _misspelled,
        "fourt ninty ninteen twelf eightteen",
    ),
    *ENGLISH_AMOUNTS,
    *ENGLISH_HOURS,
    *ENGLISH_TIMES,
    NumberForm(
        "European groups",
        re.compile(
            r"(?<![\d.,])\d{1,3}(?:\.\d{3}){1,4}(?=\s?(?:€|euros?\b))|(?<=€)\d{1,3}(?:\.\d{3}){1,4}(?![\d.])",
            IGNORE_CASE,
        ),
        _joined,
        "€ euro",
        at_digits=True,
    ),
    NumberForm(
        "groups after spaces",
        re.compile(
            r"(?:(?<=[a-z)]\. )|(?<![\d.,$] ))(?<![\d.,])\d{1,3}(?: \d{3}){1,4}(?=\s(?!and\b|or\b|to\b)[a-z]{3})"
        ),
        _joined,
        at_digits=True,
    ),
    NumberForm(
        "groups after a comma and a space",
        re.compile(
            # The first digit is looked for first, because few positions have one.
            rf"(?=[1-9])(?:{after_words('are were has had have counted sold bought of costs made')}|(?<=[$€£]))"
            r"[1-9]\d{0,2}, \d{3}(?:, \d{3})?(?=\s[a-z]{3}|[.?]\s|[.?]?\Z)"
        ),
        _joined,
        ",",
    ),
    NumberForm(
        "text recognition",
        re.compile(
            r"(?<![A-Za-z\d.,$])(?:[lI|]\d{1,4}|\d{1,3}[oO]{1,3}\d{0,3}|\d{1,3}·\d{1,2})(?=\s[a-z]{3})"
            r"|(?<=\$)\d{1,3}O{1,3}(?=\s[a-z]{3}|[.,?!](?:\s|\Z))"
        ),
        misread_number,
        "l i | o ·",
    ),
    NumberForm(
        "one",
        re.compile(
            r"\b(?:had|has|have|got|bought|found|ate) (?P<one>one)(?= [a-z]{3})"
            r"(?! (?:of|more|less|for|hundred|thousand|million|dozen|half|third|fourth|quarter|day|week|time)\b)"
        ),
        _one,
        "one",
    ),
    *ENGLISH_NAMES,
)
"""Forms that are read in each English text, in the order in which they are tried."""
