"""Offers of shops in Chinese texts: with 买三送一, 12 boxes cost as much as 9."""

import re
from dataclasses import replace

from .chinese_numbers import COUNTER, NUMBER, START, number_of
from .number_form import FormMatch, NumberForm, asks_for, no_number, number_match, text_around


_GIFT = re.compile(rf"买(?P<bought>{NUMBER})(?:{COUNTER})?[送赠](?P<free>{NUMBER})(?:{COUNTER})?")
_ASKS_FOR_A_PRICE = "(?:多少|几)(?:元|钱|块)"
_ASKS_FOR_A_REDUCTION = "便宜|省|优惠多少|平均|每.{0,4}(?:多少|几)(?:元|钱|块)"
_WANTED = re.compile(
    rf"(?:要|想|拿|带|领|共|一次买|买回|买到)[^，。；,;\d每]{{0,4}}{START}(?P<number>{NUMBER})(?={COUNTER})"
)


def _paid(match: re.Match[str], text: str) -> FormMatch | None:
    """要12盒 in a text with 买三送一: 9盒, if the question asks for the price."""
    gift = _GIFT.search(text_around(match, text))
    if gift is None or not asks_for(_ASKS_FOR_A_PRICE, text) or asks_for(_ASKS_FOR_A_REDUCTION, text):
        return None
    num_wanted, num_bought, num_free = map(number_of, (match["number"], gift["bought"], gift["free"]))
    if None in (num_wanted, num_bought, num_free) or num_wanted < num_bought + num_free:
        return None
    num_paid = num_wanted - num_wanted // (num_bought + num_free) * num_free
    read = number_match(match, num_paid, group="number")
    return replace(read, note=f"{match['number']} was read as {read.literal}, the number that is paid for ({gift[0]})")


def _gift(match: re.Match[str], text: str) -> FormMatch | None:
    """买3送1 is no number where the number that is paid for is read."""
    around = text_around(match, text)
    for wanted in _WANTED.finditer(around):
        if _paid(wanted, around) is not None:
            return no_number(match, text)
    return None


CHINESE_OFFERS = (
    NumberForm("numbers that are paid for", _WANTED, _paid, "送 赠"),
    NumberForm("gifts", _GIFT, _gift, "送 赠"),
)
"""Forms for solvers that were trained with converted units, before numerals before units."""
