"""Positions and values of the numbers in a problem text."""

from .chinese_numerals import find_chinese_numerals
from .digit_numbers import find_digit_numbers
from .english_numerals import find_english_numerals
from .number_mention import NumberMention


LANGUAGES = ("zh", "en")
_MAX_NUMERAL_BITS = 400  # numerator and denominator in digits then fit into one literal
_NUMERAL_FINDERS = {"en": find_english_numerals, "zh": find_chinese_numerals}


def find_numbers(text: str, language: str = "zh", parse_number_words: bool | None = None) -> list[NumberMention]:
    """
    The numbers of a text, from left to right.

    - Digits, half or full width or of another script: integers, decimals with `.` or `．`, thousands commas (`3,409`,
      but not `2,5,11`), percentages, bracketed fractions `(3/8)`, mixed numbers `1(3/4)`, scientific notation `1.2e3`.
      A full stop or comma that no digit follows ends the sentence, not the number; a list written with full-width
      commas is a list.
    - A bare fraction `3/8`, `1 3/8` or `1½` is one number. It is two, a division, beside an operator or an equals sign
      (`2*3/8`, `6/3=2`), beside words of division (`6/3的商`, `算式6/3`, "the quotient of 6/3"), in `3/8/2024`, and
      beyond three digits over four.
    - A minus sign is the number's where no operand can stand before it: at the start of the text or a line, after an
      opening bracket, a comma, a colon, an operator, or a word like 是, 得, 气温, "is", "of", "and". `5-3`, `10-15`
      and `x-5` hold none.
    - What is not written as one number is not one: `12:30` and `3:2` are two numbers, `(1/6)0` too; in `x2` or
      `l4小时` the digit alone counts.
    - Numerals in words, if asked for. See the two modules of this folder for what counts as one.
    - Numbers longer than what a literal may have (`hf_mwp.expressions.numbers.MAX_NUMBER_LENGTH`, 256 characters) are
      left in the text; [`unreadable_numbers`] names them.

    Args:
        text (`str`): The problem text.
        language (`str`, *optional*, defaults to `"zh"`): `"zh"` or `"en"`: which words are numerals.
        parse_number_words (`bool`, *optional*): Count number words. By default they count in English and do not in
            Chinese.

    Returns:
        `list[NumberMention]`: numbers that do not overlap, by position.

    Raises:
        ValueError: for another language.

    Example:

    ```python
    >>> [mention.text for mention in find_numbers("Seven of 3,409 apples, that is 0.2%.", language="en")]
    ['Seven', '3,409', '0.2%']
    ```
    """
    if language not in LANGUAGES:
        raise ValueError(f"language must be one of {', '.join(LANGUAGES)}, not {language!r}")
    mentions, _ = find_digit_numbers(text, language)
    if language == "en" if parse_number_words is None else parse_number_words:
        mentions += [
            NumberMention(text[start:end], start, end, value)
            for start, end, value in _NUMERAL_FINDERS[language](text)
            if max(value.numerator, value.denominator).bit_length() <= _MAX_NUMERAL_BITS
        ]
        mentions.sort(key=lambda mention: mention.start)
    return mentions


def unreadable_numbers(text: str, language: str = "zh") -> list[str]:
    """Numbers in digits beyond the bounds of [`find_numbers`]: hundreds of digits, and `1e999`."""
    return find_digit_numbers(text, language)[1]
