"""Numbers of digits and numerals in several scales in Chinese texts: 3万5千, 1千5, 一百2十6, 一千零5十."""

import re
from fractions import Fraction

from hf_mwp.runtime.expressions.numbers import to_half_width

from .chinese_numbers import CHARACTERS, COUNTER, MEASURE, START, number_of
from .number_form import FormMatch, NumberForm, number_match


_PART = r"(?:\d{1,3}(?:[.．]\d{1,2})?|[一二两三四五六七八九])"  # of a number in several scales
_SCALES = {"万": 10_000, "千": 1000, "百": 100, "十": 10}
_END_OF_NUMBER = rf"(?![\d.．{CHARACTERS}折成倍分点])"
_UNIT_OF_A_PRICE = rf"(?=一(?:{COUNTER}|{MEASURE}))"  # 1万5一平
_AFTER_ONE = r"(?=[元块，。；、,;？?！!）)\s]|\Z)"  # 1万一, but not 1.5万一年
_PART_OF_SCALE = re.compile(rf"(零?)({_PART})([万千百十]?)")


def _scaled(match: re.Match[str], text: str) -> FormMatch | None:
    """3万5千, 一百2十6, 1千5: one number, of digits and numerals."""
    written = to_half_width(match[0])
    # 三百五十 is a numeral, and 3千 has a scale that may remain.
    if not re.search(r"\d", written) or not re.search(r"[万千百十]零?.", written):
        return None
    total = Fraction(0)
    last_scale = 0
    for zero, number, name in _PART_OF_SCALE.findall(written):
        value = number_of(number)
        if value is None:
            return None
        scale = _SCALES.get(name, 1)
        if not name and not zero and last_scale > 10:
            # The last digit of 1千5 counts hundreds.
            scale = last_scale // 10
        if last_scale and scale >= last_scale:
            return None
        total += value * scale
        last_scale = scale
    return number_match(match, total)


CHINESE_SCALES = (
    NumberForm(
        "several scales",
        re.compile(
            rf"{START}(?:{_PART}(?:[万百十]|千(?![米克瓦升]))零?){{1,4}}"
            rf"(?:[2-9二三四五六七八九](?:{_END_OF_NUMBER}|{_UNIT_OF_A_PRICE})|1{_END_OF_NUMBER}|一{_AFTER_ONE})?"
        ),
        _scaled,
        "万 千 百 十",
    ),
)
