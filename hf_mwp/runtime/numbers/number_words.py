"""Functions that write whole numbers in English and Chinese words."""

from .english_numerals import WORD_VALUES


MAX_NUMBER = 99_999
"""Largest number that [`in_english`] and [`in_chinese`] write."""

_WORDS = {value: word for word, value in WORD_VALUES.items()}
_CHINESE_DIGITS = "零一二三四五六七八九"
_CHINESE_UNITS = {1000: "千", 100: "百", 10: "十"}


def in_english(number: int) -> str:
    """Write a number from 0 to 99,999: "twenty-five", "two hundred and five", "three thousand five hundred"."""
    _check(number)
    if number in _WORDS:
        return _WORDS[number]
    if number < 100:
        ones = number % 10
        return f"{_WORDS[number - ones]}-{_WORDS[ones]}"
    if number < 1000:
        hundreds, rest = divmod(number, 100)
        words = f"{_WORDS[hundreds]} hundred"
    else:
        thousands, rest = divmod(number, 1000)
        words = f"{in_english(thousands)} thousand"
    if not rest:
        return words
    if rest < 100:
        words += " and"
    return f"{words} {in_english(rest)}"


def in_chinese(number: int) -> str:
    """Write a number from 0 to 99,999: 十二, 一百零五, 三万五千. The number 2 is 二."""
    _check(number)
    if number < 10:
        return _CHINESE_DIGITS[number]
    if number >= 10_000:
        ten_thousands, rest = divmod(number, 10_000)
        words = f"{_CHINESE_DIGITS[ten_thousands]}万"
        if 0 < rest < 1000:
            words += "零"
        return words + _below_ten_thousand(rest)
    words = _below_ten_thousand(number)
    if number < 20:
        return words.removeprefix("一")
    return words


def _below_ten_thousand(number: int) -> str:
    words = ""
    gap = ""
    for value, unit in _CHINESE_UNITS.items():
        digit, number = divmod(number, value)
        if digit:
            words += f"{gap}{_CHINESE_DIGITS[digit]}{unit}"
            gap = ""
        elif words:
            gap = "零"  # written once, between two other digits
    if number:
        words += f"{gap}{_CHINESE_DIGITS[number]}"
    return words


def _check(number: int) -> None:
    if not 0 <= number <= MAX_NUMBER:
        raise ValueError(f"`number` must be from 0 to {MAX_NUMBER:,}, got {number}.")
