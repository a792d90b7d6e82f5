"""Forms of coins, bills and reduced prices in English texts: 4 quarters, 2 five-dollar bills, half off."""

import re
from fractions import Fraction

from .english_numbers import IGNORE_CASE, NUMBER, number_of
from .english_numerals import BELOW_100
from .number_form import FormMatch, NumberForm, asks_for, number_match, text_around, text_before, text_beside


_COIN_CENTS = {"quarter": 25, "dime": 10, "nickel": 5, "penny": 1, "pennie": 1}
_ASKS_FOR_CENTS = r"how many (?:more )?cents\b|\bin cents\b"
_ASKS_FOR_DOLLARS = r"how many (?:more )?dollars\b|\bin dollars\b"
_RATE_OF_TIME = re.compile(r" (?:per|an?|each|every) (?:second|minute|hour|day|week|month|year)\b")
_ASKS_FOR_POUNDS = r"how many (?:more )?pounds\b|\bin (?:pounds\b|£)"
_ASKS_FOR_PENCE = r"how many (?:more )?pence|\bin pence\b"
_ABOUT_WEIGHT = re.compile(r"\b(?:weigh|heav|pounds? of )", re.IGNORECASE)
_ABOUT_MONEY = re.compile(
    r"[$£]|\b(?:dollars?|cents?|pounds|money|coins?|dimes?|nickels?|penn(?:y|ies)|bills?|notes?|wallet|purse|cash|change"
    r"|pays?|paid|costs?|spen[dt]|worth|value|saved?|pocket|bank|jar|found|finds)\b",
    re.IGNORECASE,
)
_OTHER_COINS = re.compile(r"\b(?:quarters?|dimes?|nickels?|penn(?:y|ies)|cents?)\b", re.IGNORECASE)
_BILLS = {
    "ones": 1, "fives": 5, "fivers": 5, "tens": 10, "tenners": 10, "twenties": 20, "fifties": 50,
    "hundreds": 100,
}  # fmt: skip
_BRITISH_BILLS = re.compile(r"\b(?:fivers?|tenners?|quid)\b", re.IGNORECASE)
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
    beside = text_beside(match, text)
    is_article = match["number"].lower() in ("a", "an")
    if is_article and not _OTHER_COINS.search(beside):
        return None
    # "He ate one quarter, she ate one quarter" and "in each of two quarters" have no money.
    is_about_money = _ABOUT_MONEY.search(beside) is not None or asks_for(_ABOUT_MONEY.pattern, text)
    if match["coin"].lower() == "quarter" and not is_about_money:
        return _quarter_without_money(match)
    cents = number_of(match["number"]) * _COIN_CENTS[match["coin"].lower()]
    if asks_for(_ASKS_FOR_CENTS, text):
        return number_match(match, cents, unit=" cents")
    return number_match(match, cents / 100, unit=" dollars")


def _quarter_without_money(match: re.Match[str]) -> FormMatch | None:
    """Return a fourth for one quarter, and `None` for four quarters."""
    if number_of(match["number"]) != 1:
        return None
    return number_match(match, Fraction(1, 4), "(1/4)")


def _bills(match: re.Match[str], text: str) -> FormMatch | None:
    """2 five-dollar bills: 10 dollars, if the question asks for money."""
    if not asks_for(_ASKS_FOR_MONEY, text) or asks_for(_ASKS_FOR_BILLS, text):
        return None
    return number_match(match, number_of(match["number"]) * number_of(match["value"]), unit=" dollars")


def _bills_by_value(match: re.Match[str], text: str) -> FormMatch | None:
    """Two twenties and three fives: 40 and 15 dollars, if the text is about money and asks for it."""
    is_asked = asks_for(_ASKS_FOR_MONEY, text) and not asks_for(_ASKS_FOR_BILLS, text)
    value = match["value"].lower()
    is_british = "£" in text or ("$" not in text and _BRITISH_BILLS.search(text) is not None)
    if not is_asked or not (is_british or _ABOUT_MONEY.search(text_beside(match, text))):
        return None
    unit = " pounds" if is_british else " dollars"
    return number_match(match, number_of(match["number"]) * _BILLS[value], unit=unit)


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
    """85p in a text with or a question for pounds: 0.85 pounds, unless the question asks for pence."""
    asks_for_pounds = asks_for(_ASKS_FOR_POUNDS, text) and not _ABOUT_WEIGHT.search(text)
    if not asks_for_pounds and "£" not in text:
        return None
    if asks_for(_ASKS_FOR_PENCE, text):
        return None
    return number_match(match, Fraction(match["number"]) / 100, unit=" pounds")


def _dollars_in_cents(match: re.Match[str], text: str) -> FormMatch | None:
    """$5.40 in a question for cents: 540 cents."""
    # "How many cents is $3?" is a conversion itself.
    if not asks_for(_ASKS_FOR_CENTS, text) or len(_AMOUNTS.findall(text)) < 2:
        return None
    return number_match(match, Fraction(match["number"].replace(",", "")) * 100, unit=" cents")


def _cents(match: re.Match[str], text: str) -> FormMatch | None:
    """50 cents in a text with dollars: 0.5 dollars, unless the question asks for cents."""
    around = text_around(match, text)
    is_rate_in_dollars = _RATE_OF_TIME.match(text, match.end()) is not None and asks_for(_ASKS_FOR_DOLLARS, text)
    if not (_DOLLARS.search(around) or is_rate_in_dollars) or asks_for(_ASKS_FOR_CENTS, text):
        return None
    if _DOLLARS_BEFORE.search(text_before(match, text)):
        # $3 and 20 cents are one amount.
        return None
    unit = "-dollar" if match["gap"] == "-" else " dollars"
    return number_match(match, number_of(match["number"]) / 100, unit=unit)


_AMOUNTS = re.compile(r"\$\s?\d|\d\s?(?:cents?\b|¢)", re.IGNORECASE)


ENGLISH_COINS = (
    NumberForm(
        "pence",
        re.compile(r"(?<![\d.,£$])(?P<number>\d{1,3}(?:\.\d)?)\s?(?:p|pence)\b(?!\.\s?m)"),
        _pence,
        "p",
        at_digits=True,
    ),
    NumberForm(
        "cents",
        re.compile(
            r"(?<![\d.,£$/])(?P<number>\d{1,3}(?:\.\d)?)(?P<gap>[\s-]?)(?:cents?\b|¢|(?<=\d)c\b)", re.IGNORECASE
        ),
        _cents,
        "cent ¢ c",
        at_digits=True,
    ),
    NumberForm(
        "coins",
        re.compile(
            rf"(?<![\d.,/$])\b(?P<number>\d{{1,4}}|{BELOW_100}|an?)\s(?P<coin>quarter|dime|nickel|penny|pennie)s?\b"
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
    NumberForm(
        "bills by their value",
        re.compile(
            rf"(?<![\d.,/$])\b(?P<number>\d{{1,3}}|{BELOW_100})\s(?P<value>{'|'.join(_BILLS)})\b"
            r"(?!\s(?:of|place|places|column|digits?|blocks?|rods?|or|thousands)\b)",
            IGNORE_CASE,
        ),
        _bills_by_value,
        " ".join(_BILLS),
    ),
    NumberForm(
        "dollars in cents",
        re.compile(
            r"\$(?P<number>\d{1,3}(?:\.\d{1,2})?)(?![\d%]|[.,]\d|\s(?:million|billion|thousand|and \d{1,2} cents)\b)"
        ),
        _dollars_in_cents,
        "cents",
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
