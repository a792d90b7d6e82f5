"""Digits and words of a text that may be numbers but are not read as such."""

import re
from collections.abc import Sequence

from .english_numbers import ONE_TO_NINE
from .english_numerals import TENS
from .number_form import NumberForm, find_forms
from .number_mention import NumberMention


MAX_NOTES = 5

_UNREAD = {
    "zh": re.compile(
        r"(?<![A-Za-z])[lI|丨]\d{1,4}|(?<![A-Za-z\d])\d{1,4}[oO](?![A-Za-z])|[一二两三四五六七八九十\d]刻(?!苦|薄|意)"
        r"|[一二两三四五六七八九十]打(?![开破电听算扮])|(?<=[\u3400-\u9fff])[.．]\d{1,3}"
        # Numerals without a unit, and numbers that text recognition may have split: 月薪八千五, 每件3 5元, 2，5元.
        r"|(?<![第周初期零一二两三四五六七八九十百千万])(?:十|[一二两三四五六七八九][十百千万])"
        r"[零一二三四五六七八九十百千万]{1,8}(?=[，。；,;？?！!]|\Z)"
        r"|(?<![\d.．,，、：: ])\d{1,2}[ ，]\d{1,2}(?=[元角块斤吨米]|千克|公斤|千米|厘米)"
        # Offers of shops.
        r"|买[一二两三四五六七八九十\d]{1,2}[送赠][一二两三四五六七八九十\d]"
    ),
    "en": re.compile(
        r"(?<![A-Za-z\d])(?:[lI]\d{1,4}|\d{1,4}[oO])(?![A-Za-z])|\ba pair of\b|\bhalf (?:an?|of an?) \w+"
        r"|(?<=[a-z])\.\d{1,3}"
        # Offers of shops.
        r"|\b(?:bogo|BOGO)\b|\b[Bb]uy (?:one|two|three|\d),? get (?:one|two|\d)\b"
        # Groups of digits, and prices in words.
        r"|(?<![\d.,:] )(?<![\d.,:])[1-9]\d{0,2}, \d{3}(?=\s[a-z]{3})"
        rf"|\b(?:{ONE_TO_NINE}) (?:{'|'.join(TENS)})(?:[- ](?:{ONE_TO_NINE}))?(?![\w-]| dollar)"
    ),
}


def find_unread(
    text: str, mentions: list[NumberMention], language: str, unread_forms: Sequence[NumberForm] = ()
) -> list[str]:
    """Return a note for each of the first `MAX_NOTES` words and characters that may be unread numbers: matches
    of the patterns of the language, and of `unread_forms`, which this reading of the text leaves out."""
    covered = bytearray(len(text))
    for mention in mentions:
        covered[mention.start : mention.end] = b"\1" * (mention.end - mention.start)
    spans = [match.span() for match in _UNREAD[language].finditer(text)]
    spans += [(match.start, match.end) for match in find_forms(text, unread_forms)]
    notes = "\n".join(mention.note for mention in mentions)
    words: list[str] = []
    for start, end in sorted(spans):
        word = text[start:end]
        # A numeral is shown with its unit.
        if len(word) == 1:
            word = text[start : end + 1]
        # A note on a number may name the word: 12 was read as 9 (买三送一).
        if word not in words and word not in notes and not all(covered[start:end]):
            words.append(word)
        if len(words) == MAX_NOTES:
            break
    return [f"{word} was not read as a number" for word in words]
