"""Offers of shops in English texts: with "buy 2 get 1 free", 9 cans cost as much as 6."""

import re

from .english_numbers import IGNORE_CASE, NUMBER, number_of
from .offers import Offers


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


ENGLISH_OFFERS = Offers(_GIFT, _WANTED, _ASKS_FOR_A_PRICE, _ASKS_FOR_A_REDUCTION, number_of).forms("free bogo")
"""Forms for solvers that were trained with converted units, before all others but remarks."""
