"""Offers of shops in English texts: with "buy 2 get 1 free", 9 cans cost as much as 6."""

import re
from dataclasses import replace

from .english_numbers import IGNORE_CASE, NUMBER, number_of
from .number_form import FormMatch, NumberForm, asks_for, no_number, number_match, text_around


_GIFT = re.compile(
    rf"\bbuy (?P<bought>{NUMBER}),? (?:and |you )?get (?P<free>{NUMBER})(?: more| for| of them)? free\b"
    r"|\bbogo\b(?! (?:half|50))(?: free)?",
    IGNORE_CASE,
)
_ASKS_FOR_A_PRICE = r"how much|\btotal\b|\bwhat\b.{0,20}\b(?:pay|cost|price)|how many (?:dollars|cents|pounds|euros)"
_ASKS_FOR_A_REDUCTION = r"\b(?:how|what)\b[^.?!]*\b(?:save|saved|saving|cheaper|each|per|average|free)\b"
_NO_GOODS = r"(?:free|off|more|dollars?|bucks|cents|weeks?|days?)\b"
_WANTED = re.compile(
    r"\b(?:wants?|needs?|buys?|bought|buying|gets?|getting|got|takes?|took|orders?|ordered|pick up|for)"
    rf"(?: to (?:buy|get))?\s(?P<number>{NUMBER})(?=\s(?!{_NO_GOODS})[a-z]|[.,?!]|\Z)",
    IGNORE_CASE,
)


def _paid(match: re.Match[str], text: str) -> FormMatch | None:
    """I need 9 cans in a text with "buy 2 get 1 free": 6 cans, if the question asks for the price."""
    gift = _GIFT.search(text_around(match, text))
    if gift is None or not asks_for(_ASKS_FOR_A_PRICE, text) or asks_for(_ASKS_FOR_A_REDUCTION, text):
        return None
    num_wanted = number_of(match["number"])
    num_bought = number_of(gift["bought"] or "1")
    num_free = number_of(gift["free"] or "1")
    if num_wanted < num_bought + num_free or num_wanted.denominator > 1:
        return None
    num_paid = num_wanted - num_wanted // (num_bought + num_free) * num_free
    read = number_match(match, num_paid, group="number")
    return replace(read, note=f"{match['number']} was read as {read.literal}, the number that is paid for ({gift[0]})")


def _gift(match: re.Match[str], text: str) -> FormMatch | None:
    """Buy 2 get 1 free has no number where the number that is paid for is read."""
    around = text_around(match, text)
    for wanted in _WANTED.finditer(around):
        if _paid(wanted, around) is not None:
            return no_number(match, text)
    return None


ENGLISH_OFFERS = (
    NumberForm("numbers that are paid for", _WANTED, _paid, "free bogo"),
    NumberForm("gifts", _GIFT, _gift, "free bogo"),
)
"""Forms for solvers that were trained with converted units, before all others but remarks."""
