"""Offers of shops in both languages: with "buy 2 get 1 free", 9 cans cost as much as 6."""

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction

from .number_form import FormMatch, NumberForm, asks_for, no_number, number_match, text_around


@dataclass(frozen=True)
class Offers:
    """
    Offers of a language in which some of the things are free.

    Args:
        gift (`re.Pattern`): Pattern of an offer, with the groups `bought` and `free`; both are 1 if they are missing.
        wanted (`re.Pattern`): Pattern of the number of things that somebody takes, the group `number`.
        asks_for_a_price (`str`): Pattern of questions for the price of all things.
        asks_for_a_reduction (`str`): Pattern of questions about the offer itself, in which all numbers are needed.
        number_of (`Callable`): Function that returns the value of a number as written, or `None`.
    """

    gift: re.Pattern[str]
    wanted: re.Pattern[str]
    asks_for_a_price: str
    asks_for_a_reduction: str
    number_of: Callable[[str], Fraction | None]

    def forms(self, words: str) -> tuple[NumberForm, ...]:
        """Return the forms of numbers in texts with one of these words."""
        return (
            NumberForm("numbers that are paid for", self.wanted, self._paid, words),
            NumberForm("gifts", self.gift, self._gift, words),
        )

    def _paid(self, match: re.Match[str], text: str) -> FormMatch | None:
        """I need 9 cans in a text with "buy 2 get 1 free": 6 cans, if the question asks for the price."""
        gift = self.gift.search(text_around(match, text))
        if gift is None:
            return None
        if not asks_for(self.asks_for_a_price, text) or asks_for(self.asks_for_a_reduction, text):
            return None
        num_wanted = self.number_of(match["number"])
        num_bought = self.number_of(gift["bought"] or "1")
        num_free = self.number_of(gift["free"] or "1")
        if None in (num_wanted, num_bought, num_free):
            return None
        if num_wanted < num_bought + num_free or num_wanted.denominator > 1:
            return None
        num_paid = num_wanted - num_wanted // (num_bought + num_free) * num_free
        read = number_match(match, num_paid, group="number")
        note = f"{match['number']} was read as {read.literal}, the number that is paid for ({gift[0]})"
        return replace(read, note=note)

    def _gift(self, match: re.Match[str], text: str) -> FormMatch | None:
        """Buy 2 get 1 free has no number where the number that is paid for is read."""
        around = text_around(match, text)
        for wanted in self.wanted.finditer(around):
            if self._paid(wanted, around) is not None:
                return no_number(match, text)
        return None
