"""Forms of coins, bills and reduced prices in English texts: 4 quarters, 2 five-dollar bills, half off."""

import re
from fractions import Fraction

from .english_numbers import IGNORE_CASE, NUMBER, number_of
from .english_numerals import BELOW_100
from .number_form import FormMatch, NumberForm, asks_for, number_match, text_around, text_before


_CENTS = {"quarter": 25, "dime": 10, "nickel": 5, "penny": 1, "pennie": 1}
_ASKS_FOR_CENTS = r"how many (?:more )?cents|\bin cents\b"
_DOLLARS = re.compile(r"\$\s?\d")
_DOLLARS_BEFORE = re.compile(r"(?:\$\s?\d+|\b(?:dollars?|bucks?)),?(?: and)? $", re.IGNORECASE)
_ASKS_FOR_COINS = "how many (?:more )?(?:coins|quarters|dimes|nickels|penn)"
_ASKS_FOR_BILLS = r"how many (?:more )?(?:bills|notes)|\b(?:fewer|as many)\b"
_ASKS_FOR_MONEY = (
    r"how much (?:money|is|are|was|were|do|does|did|in|more|change)\b|how many (?:more )?(?:cents|dollars)"
    r"|\b(?:in|total) (?:cents|dollars)\b|\b(?:amount|value|worth)\b"
)


def _coins(match: re.Match[str], text: str) -> FormMatch | None:
    """4 quarters and 3 dimes: their value, if the question asks for money."""
    if not asks_for(_ASKS_FOR_MONEY, text) or asks_for(_ASKS_FOR_COINS, text):
        return None
    cents = number_of(match["number"]) * _CENTS[match["coin"].lower()]
    if asks_for(_ASKS_FOR_CENTS, text):
        return number_match(match, cents, unit=" cents")
    return number_match(match, cents / 100, unit=" dollars")


def _bills(match: re.Match[str], text: str) -> FormMatch | None:
    """2 five-dollar bills: 10 dollars, if the question asks for money."""
    if not asks_for(_ASKS_FOR_MONEY, text) or asks_for(_ASKS_FOR_BILLS, text):
        return None
    return number_match(match, number_of(match["number"]) * number_of(match["value"]), unit=" dollars")


def _note(match: re.Match[str], text: str) -> FormMatch:
    """A fiver: 5 pounds, or 5 dollars in a text with dollars."""
    value = {"fiver": 5, "tenner": 10}[match["note"].lower()]
    unit = " dollars" if "$" in text else " pounds"
    return number_match(match, Fraction(value), unit=unit)


def _half_off(match: re.Match[str], text: str) -> FormMatch:
    """Half off, at half price: with the words that the solvers learned."""
    return number_match(match, Fraction(1, 2), "50%", unit=" off")


def _members_of_pairs(match: re.Match[str], text: str) -> FormMatch | None:
    """9 pairs of socks, if the question asks for the number of socks."""
    noun = match["noun"]
    if not asks_for(rf"how many (?:\w+ )?{noun}\b", text) or asks_for("how many (?:more )?pairs", text):
        return None
    return number_match(match, 2 * number_of(match["number"]), unit=f" {noun}")


def _pence(match: re.Match[str], text: str) -> FormMatch | None:
    """85p in a text with pounds: 0.85 pounds, unless the question asks for pence."""
    if "£" not in text or asks_for(r"how many (?:more )?pence|\bin pence\b", text):
        return None
    return number_match(match, Fraction(int(match["number"]), 100), unit=" pounds")


def _cents(match: re.Match[str], text: str) -> FormMatch | None:
    """50 cents in a text with dollars: 0.5 dollars, unless the question asks for cents."""
    around = text_around(match, text)
    if not _DOLLARS.search(around) or asks_for(_ASKS_FOR_CENTS, text):
        return None
    if _DOLLARS_BEFORE.search(text_before(match, text)):
        # $3 and 20 cents are one amount.
        return None
    return number_match(match, number_of(match["number"]) / 100, unit=" dollars")


ENGLISH_COINS = (
    NumberForm("pence", re.compile(r"(?<![\d.,£$])(?P<number>\d{1,3})\s?p\b"), _pence, "p", at_digits=True),
    NumberForm(
        "cents",
        re.compile(r"(?<![\d.,£$/])(?P<number>\d{1,3}(?:\.\d)?)\s?(?:cents?\b|¢)", re.IGNORECASE),
        _cents,
        "cent ¢",
        at_digits=True,
    ),
    NumberForm(
        "coins",
        re.compile(
            rf"(?<![\d.,/$])\b(?P<number>\d{{1,4}}|{BELOW_100})\s(?P<coin>quarter|dime|nickel|penny|pennie)s?\b"
            r"(?!\s(?:of|as|to|past|mile|hour|pound|cup|inch|acre))",
            IGNORE_CASE,
        ),
        _coins,
        "quarter dime nickel penn",
    ),
    NumberForm(
        "bills",
        re.compile(
            rf"(?<![\d.,/$])\b(?P<number>\d{{1,4}}|{BELOW_100})\s(?:\$(?=\d))?(?P<value>{NUMBER})(?:[\s-]dollar)?[\s-](?:bills?|notes?)\b",
            IGNORE_CASE,
        ),
        _bills,
        "bill note",
    ),
    NumberForm("notes", re.compile(r"\ba (?P<note>fiver|tenner)\b", IGNORE_CASE), _note, "fiver tenner"),
    NumberForm(
        "half off",
        re.compile(r"\b(?:half[\s-]off|(?:at |for )?half[\s-]price)\b(?! the| of)", IGNORE_CASE),
        _half_off,
        "half",
    ),
    NumberForm(
        "members of pairs",
        re.compile(
            rf"(?<![\d.,/$])\b(?P<number>\d{{1,4}}|{BELOW_100})\spairs?\sof\s(?P<noun>socks|shoes|gloves|mittens|earrings|boots|skates)\b",
            IGNORE_CASE,
        ),
        _members_of_pairs,
        "pair",
    ),
)
"""Forms that are read before all other forms of English texts, for solvers that were trained with converted units."""
