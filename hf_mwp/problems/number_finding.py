"""Where the numbers of a problem text stand and what they are worth."""

from ..expressions import NUMBER_PATTERN, ExpressionError, parse_number
from .chinese_numerals import find_chinese_numerals
from .english_numerals import find_english_numerals
from .number_mention import NumberMention


LANGUAGES = ("zh", "en")
_MAX_NUMERAL_BITS = 400  # numerator and denominator in digits then fit into one literal
_NUMERAL_FINDERS = {"en": find_english_numerals, "zh": find_chinese_numerals}


def find_numbers(text: str, language: str = "zh", numerals: bool | None = None) -> list[NumberMention]:
    """
    The numbers of a text, from left to right.

    - Digits, half or full width: integers, decimals with `.` or `．`, thousands commas (`3,409`, but not `2,5,11`),
      percentages, bracketed fractions `(3/8)`, mixed numbers `1(3/4)`. A full stop or comma that no digit follows ends
      the sentence, not the number; a list written with full-width commas is a list.
    - What is not written as one number is not one: `3/8` without brackets is two numbers, `(1/6)0` and `12:30` too;
      in `x2` or `l4小时` the digit alone counts; signs belong to no number.
    - Numerals in words, if asked for. See the two modules of this folder for what counts as one.
    - Numbers longer than what a literal may have (`hf_mwp.expressions.numbers.MAX_NUMBER_LENGTH`, 256 characters) are
      left in the text.

    Args:
        text (`str`):
            The problem text.
        language (`str`, *optional*, defaults to `"zh"`):
            `"zh"` or `"en"`: which words are numerals.
        numerals (`bool`, *optional*):
            Whether numerals in words count. By default they do in English and do not in Chinese.

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
    mentions = []
    for match in NUMBER_PATTERN.finditer(text):
        try:
            mentions.append(NumberMention(match.group(), *match.span(), parse_number(match.group())))
        except ExpressionError:
            continue
    if language == "en" if numerals is None else numerals:
        mentions += [
            NumberMention(text[start:end], start, end, value)
            for start, end, value in _NUMERAL_FINDERS[language](text)
            if max(value.numerator, value.denominator).bit_length() <= _MAX_NUMERAL_BITS
        ]
        mentions.sort(key=lambda mention: mention.start)
    return mentions
