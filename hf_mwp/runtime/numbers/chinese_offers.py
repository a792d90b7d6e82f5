"""Offers of shops in Chinese texts: with 买三送一, 12 boxes cost as much as 9."""

import re

from .chinese_numbers import COUNTER, NUMBER, START, number_of
from .offers import Offers


_GIFT = re.compile(rf"买(?P<bought>{NUMBER})(?:{COUNTER})?[送赠](?P<free>{NUMBER})(?:{COUNTER})?")
_ASKS_FOR_A_PRICE = "(?:多少|几)(?:元|钱|块)"
_ASKS_FOR_A_REDUCTION = "便宜|省|优惠多少|平均|每.{0,4}(?:多少|几)(?:元|钱|块)"
_WANTED = re.compile(
    rf"(?:要|想|拿|带|领|共|一次买|买回|买到)[^，。；,;\d每]{{0,4}}{START}(?P<number>{NUMBER})(?={COUNTER})"
)


CHINESE_OFFERS = Offers(_GIFT, _WANTED, _ASKS_FOR_A_PRICE, _ASKS_FOR_A_REDUCTION, number_of).forms("送 赠")
"""Forms for solvers that were trained with converted units, before numerals before units."""
