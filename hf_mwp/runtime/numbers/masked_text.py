"""Functions that find and mask the numbers in problem texts."""

from dataclasses import dataclass, replace

from hf_mwp.utils.checked_types import checked

from .chinese_dates import CHINESE_DATES
from .chinese_forms import CHINESE_COUNTS, CHINESE_FORMS
from .chinese_headings import CHINESE_HEADINGS
from .chinese_intervals import CHINESE_INTERVALS
from .chinese_money import CONVERTED_MONEY
from .chinese_numerals import find_chinese_numerals
from .chinese_offers import CHINESE_OFFERS
from .chinese_periods import CHINESE_PERIODS, PARTS_OF_AN_HOUR
from .chinese_remarks import CHINESE_REMARKS
from .digit_numbers import find_digit_numbers
from .english_coins import ENGLISH_COINS
from .english_dates import ENGLISH_DATES
from .english_forms import ENGLISH_FORMS
from .english_intervals import ENGLISH_INTERVALS
from .english_numerals import find_english_numerals
from .english_offers import ENGLISH_OFFERS
from .english_periods import ENGLISH_PERIODS
from .english_remarks import ENGLISH_REMARKS
from .english_words import ENGLISH_WORDS
from .number_form import FormMatch, find_forms
from .number_mention import IN_DIGITS, NumberMention
from .scale_words import scale_numbers
from .units import convert_units
from .unread_numbers import find_unread
from .written_forms import WRITTEN_FORMS


LANGUAGES = ("zh", "en")
NUMBER_READINGS = ("original", "plain", "people")
"""Readings of numbers: `"original"` finds digits and number words as the first releases did, `"plain"` also the forms
of the guide "Numbers in texts", `"people"` also Chinese numerals before units in texts with digits (两个, 五盒)."""
DEFAULT_READING = "plain"

_FORMS = {
    ("zh", "plain"): (*CHINESE_HEADINGS, *WRITTEN_FORMS, *CHINESE_FORMS),
    ("en", "plain"): (*WRITTEN_FORMS, *ENGLISH_FORMS),
    ("zh", "people"): (
        *CHINESE_HEADINGS,
        *CHINESE_REMARKS,
        *WRITTEN_FORMS,
        *CHINESE_OFFERS,
        *CHINESE_INTERVALS,
        *CHINESE_DATES,
        *CHINESE_PERIODS,
        *CHINESE_FORMS,
        *PARTS_OF_AN_HOUR,
        *CONVERTED_MONEY,
        *CHINESE_COUNTS,
    ),
    ("en", "people"): (
        *ENGLISH_REMARKS,
        *WRITTEN_FORMS,
        *ENGLISH_OFFERS,
        *ENGLISH_COINS,
        *ENGLISH_INTERVALS,
        *ENGLISH_DATES,
        *ENGLISH_PERIODS,
        *ENGLISH_WORDS,
        *ENGLISH_FORMS,
    ),
}
_MAX_NUMERAL_BITS = 400  # the decimal digits of numerator and denominator must fit into a literal
_NUMERAL_FINDERS = {"en": find_english_numerals, "zh": find_chinese_numerals}


@checked
def find_numbers(
    text: str, language: str = "zh", parse_number_words: bool | None = None, number_reading: str = DEFAULT_READING
) -> list[NumberMention]:
    """
    Find the numbers in a text, from left to right.

    - Digits in half width or full width: integers, decimals with `.` or `．`, thousands commas (`3,409`, but not
      `2,5,11`), `50 000`, percentages, bracketed fractions `(3/8)`, mixed numbers `1(3/4)`, LaTeX
      `\\frac{3}{8}` and `80\\%`, scientific notation `1.2e3`. A full stop or comma without a following digit, and a
      full-width comma, are punctuation.
    - Words for large numbers after digits remain in the text (`28万`, `32 million`), in English also "percent" and `%`
      after a space, because the equations of the datasets have 28, 32 and, for `5 %`, `5*0.01`.
    - A bare fraction `3/8`, `1 3/8`, `1 and 3/8`, `1又3/8` or `1½` is a single number. It is a division of two numbers
      next to an operator or an equals sign (`2*3/8`, `6/3=2`), next to words for a division (`6/3的商`, `算式6/3`,
      "divide 6/3"), in `3/8/2024`, or with more than three digits over four digits.
    - "4 and a half", `8分之3`, `1又8分之3` and `百分之80` are single numbers.
    - A minus sign is part of a number if no operand can precede it: at the start of the text or a line, after an
      opening bracket, a comma, a colon, an operator, or a word such as 是, 得, 气温, "is", "of", "and". It is an
      operator in `5-3`, `10-15` and `x-5`. In `-$20` and `$-20`, too, the sign is part of the number.
    - `12:30`, `3:2` and `(1/6)0` are two numbers. In `x2` or `l4小时`, only the digit is a number.
    - Number words ("seven", 三) are included if `parse_number_words`, by default in English, and in Chinese texts
      without digits.
    - Numbers with more than 256 characters are skipped; [`mask_numbers`] lists them.
    - `number_reading`, one of `NUMBER_READINGS`, selects further forms, such as 八五折, 3千克半 and "two thirds". The
      guide "Numbers in texts" has a table of them.
    """
    return list(mask_numbers(text, language, parse_number_words, number_reading).mentions)


@dataclass(frozen=True)
class MaskedText:
    """Text split at its numbers. Unlike a string with placeholders, it can be rebuilt if the text contains `[NUM]`."""

    segments: tuple[str, ...]  # texts before, between and after the numbers
    mentions: tuple[NumberMention, ...]
    unreadable: tuple[str, ...] = ()  # numbers in digits that are not masked: too long, or too large (`1e999`)
    notes: tuple[str, ...] = ()  # numbers that were read in one of several ways, or not read

    @property
    def shown_segments(self) -> tuple[str, ...]:
        """Texts between the placeholders of the masked text: `segments`, with the units inside of the numbers."""
        segments = [self.segments[0]]
        for mention, segment in zip(self.mentions, self.segments[1:], strict=True):
            segments.append(mention.unit + segment)
        return tuple(segments)

    def placeholders(self, indexed: bool = False, limit: int | None = None) -> list[str]:
        """Return `[NUM]` for each number or, if `indexed`, `[NUM0]`, `[NUM1]`, ... for the first `limit` numbers."""
        num_numbers = len(self.mentions)
        if not indexed:
            return ["[NUM]"] * num_numbers
        num_indexed = num_numbers
        if limit is not None:
            num_indexed = min(limit, num_numbers)
        names = [f"[NUM{index}]" for index in range(num_indexed)]
        return names + ["[NUM]"] * (num_numbers - num_indexed)

    def text(self, indexed: bool = False, limit: int | None = None) -> str:
        """Return the masked text. The arguments are those of [`~MaskedText.placeholders`]."""
        text, *segments = self.shown_segments
        for name, segment in zip(self.placeholders(indexed, limit), segments, strict=True):
            text += name + segment
        return text

    def placeholder_offsets(self, indexed: bool = False, limit: int | None = None) -> list[tuple[int, int]]:
        """Return the half-open character range of each placeholder in the result of [`~MaskedText.text`]."""
        offsets = []
        end = 0
        for segment, name in zip(self.shown_segments[:-1], self.placeholders(indexed, limit), strict=True):
            start = end + len(segment)
            end = start + len(name)
            offsets.append((start, end))
        return offsets


@checked
def mask_numbers(
    text: str, language: str = "zh", parse_number_words: bool | None = None, number_reading: str = DEFAULT_READING
) -> MaskedText:
    """Mask the numbers of [`find_numbers`]. Raises `ValueError` if `language` is neither `"zh"` nor `"en"`, or
    `number_reading` not one of `NUMBER_READINGS`."""
    if language not in LANGUAGES:
        raise ValueError(f"`language` must be one of {', '.join(LANGUAGES)}, not {language!r}.")
    if number_reading not in NUMBER_READINGS:
        raise ValueError(f"`number_reading` must be one of {', '.join(NUMBER_READINGS)}, not {number_reading!r}.")
    mentions: list[NumberMention] = []
    unreadable = []
    for start, end, value in find_digit_numbers(text, language):
        written = text[start:end]
        if value is None:
            unreadable.append(written)
        else:
            mentions.append(NumberMention(written, start, end, value))
    reads_words = parse_number_words
    if reads_words is None:
        reads_words = language == "en" or not (mentions or unreadable)
    if reads_words:
        mentions = _with_number_words(text, mentions, language)
    notes: list[str] = []
    if number_reading != "original":
        searched = _as_searched(text, language)
        mentions = _with_forms(text, searched, mentions, language, parse_number_words, number_reading)
        unread_forms = ()
        if language == "zh" and not reads_words:
            unread_forms = CHINESE_COUNTS
        notes = [mention.note for mention in mentions if mention.note]
        notes += find_unread(searched, mentions, language, unread_forms)
    segments = []
    start = 0
    for mention in mentions:
        segments.append(text[start : mention.start])
        start = mention.end
    segments.append(text[start:])
    return MaskedText(tuple(segments), tuple(mentions), tuple(unreadable), tuple(notes))


def _with_forms(
    text: str,
    searched: str,
    mentions: list[NumberMention],
    language: str,
    parse_number_words: bool | None,
    number_reading: str,
) -> list[NumberMention]:
    """Return the numbers of a text with those in special forms, scaled and converted as this reading does. `searched`
    is [`_as_searched`] of the text."""
    matches = find_forms(searched, _FORMS[language, number_reading])
    if parse_number_words is False:
        matches = [match for match in matches if IN_DIGITS.search(text, match.start, match.end)]
    mentions = _replace_by_forms(text, mentions, matches)
    mentions = scale_numbers(searched, mentions, language)
    if number_reading == "people":
        mentions = convert_units(searched, mentions, language)
    if searched is not text:
        mentions = [replace(mention, text=text[mention.start : mention.end]) for mention in mentions]
    return mentions


def _as_searched(text: str, language: str) -> str:
    """Return an English text in capitals (HOW MANY APPLES ...) in lower case, as the patterns of the forms expect it,
    and any other text unchanged. Offsets are the same in both."""
    if language != "en" or not text.isupper():
        return text
    lowered = text.lower()
    return lowered if len(lowered) == len(text) else text


def _with_number_words(text: str, mentions: list[NumberMention], language: str) -> list[NumberMention]:
    """Return the numbers in digits, and the number words outside of them, from left to right."""
    # Numbers in digits may begin with a numeral: in 三百分之1, the number is 百分之1.
    covered: set[int] = set()
    for mention in mentions:
        covered.update(range(mention.start, mention.end))
    result = list(mentions)
    for start, end, value in _NUMERAL_FINDERS[language](text):
        num_bits = max(value.as_integer_ratio()).bit_length()
        if num_bits <= _MAX_NUMERAL_BITS and covered.isdisjoint(range(start, end)):
            result.append(NumberMention(text[start:end], start, end, value))
    return sorted(result, key=lambda mention: mention.start)


def _replace_by_forms(text: str, mentions: list[NumberMention], matches: list[FormMatch]) -> list[NumberMention]:
    """Replace the numbers inside of forms by the numbers of the forms. A form that cuts a number is left out."""
    result: list[NumberMention] = []
    first = 0  # index of the first mention that is not copied or replaced
    for match in matches:
        while first < len(mentions) and mentions[first].end <= match.start:
            result.append(mentions[first])
            first += 1
        # Mentions from `first` to `after` overlap with the form.
        after = first
        while after < len(mentions) and mentions[after].start < match.end:
            after += 1
        if after > first and (mentions[first].start < match.start or mentions[after - 1].end > match.end):
            continue
        first = after
        if match.value is not None:
            written = text[match.start : match.end]
            result.append(
                NumberMention(written, match.start, match.end, match.value, match.unit, match.note, match.literal)
            )
    return result + mentions[first:]
