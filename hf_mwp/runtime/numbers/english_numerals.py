"""Search for English number words: "seven", "twenty-five", "two hundred and five", "a million", "a dozen". They help
307 of 1,218 equations of ASDiv-A. "one", "a" and "half" are numbers only in longer ones ("twenty-one", "a million",
"half a dozen"), because they would help few equations but add numbers to many problems."""

import re
from collections.abc import Iterable, Iterator
from fractions import Fraction


DIGITS = "zero one two three four five six seven eight nine".split()
_TEENS = "ten eleven twelve thirteen fourteen fifteen sixteen seventeen eighteen nineteen".split()
ONES = {word: value for value, word in enumerate(DIGITS + _TEENS)}
TENS = dict(zip("twenty thirty forty fifty sixty seventy eighty ninety".split(), range(20, 100, 10), strict=True))
WORD_VALUES = ONES | TENS
_SCALES = {"thousand": 10**3, "million": 10**6, "billion": 10**9}


def _choice(words: Iterable[str]) -> str:
    return "(?:" + "|".join(sorted(words, key=len, reverse=True)) + ")"


_GAP = r"(?:\s+|-)"
_UNIT = _choice(DIGITS[1:])
_ORDINAL = r"-(?:first|third|(?:four|fif|six|seven|eigh|nin)th)\b"  # twenty-first is no number
BELOW_100 = rf"(?:{_choice(TENS)}(?!{_ORDINAL})(?:(?:\s?-\s?|\s+){_UNIT}\b)?|{_choice(ONES)})"
_AND_A_HALF = r"(?:[\s-]and[\s-](?:a|one)[\s-]half\b(?![\s-](?:a\s)?dozen))?"
_BELOW_1000 = (
    rf"(?:(?:an?|{BELOW_100}){_GAP}hundred(?:{_GAP}(?:and{_GAP})?{BELOW_100}\b(?!{_GAP}hundred\b))?|{BELOW_100})"
)
_HEAD = rf"(?:an?|{_BELOW_1000})"
_AND = rf"(?:,?\s+|-)(?:and{_GAP})?"
# The scales of groups must decrease: "five thousand and five thousand" are two numbers.
_TAIL = rf"(?:{_AND}{_BELOW_1000}\b(?!{_GAP}{_choice(_SCALES)}\b))?"
_THOUSANDS = rf"(?:{_AND}{_HEAD}{_GAP}thousand\b)?"
_MILLIONS = rf"(?:{_AND}{_HEAD}{_GAP}million\b)?"
# The lookaheads reject most words before the alternatives are tried. If case is ignored, `ſ` matches s.
_FIRST = rf"(?-i:(?=[adefhnostzſADEFHNOSTZ]))(?=an?[\s-]|half|dozen|{_choice(WORD_VALUES)})"
_PATTERN = re.compile(
    rf"\b{_FIRST}(?:half(?:-|\s(?:a\s)?)dozen|dozens?|{_HEAD}{_GAP}billion\b{_MILLIONS}{_THOUSANDS}{_TAIL}"
    rf"|{_HEAD}{_GAP}million\b{_THOUSANDS}{_TAIL}|{_HEAD}{_GAP}thousand\b{_TAIL}|{_BELOW_1000}{_AND_A_HALF})\b",
    flags=re.IGNORECASE,
)
_WORDS = re.compile("[a-z]+")


def find_english_numerals(text: str) -> Iterator[tuple[int, int, Fraction]]:
    """Yield the start, end and value of the number words. "8 dozen" are two numbers, as in the equations of MAWPS."""
    for match in _PATTERN.finditer(text):
        words = _WORDS.findall(match[0].lower())
        # If case is ignored, some letters outside of ASCII match, too: a dotless i in "sıx".
        is_ascii = "".join(match[0].split()).isascii()
        if is_ascii and words != ["one"]:
            yield match.start(), match.end(), Fraction(words_value(words))


def words_value(words: list[str]) -> Fraction | int:
    """Return the value of a number in lower-case words."""
    if words[-1] == "half":  # two and a half
        return words_value(words[:-3]) + Fraction(1, 2)
    if words[-1].startswith("dozen"):
        return 6 if len(words) > 1 else 12  # half a dozen
    total = 0
    group = 0  # of three digits
    for word in words:
        if word in _SCALES:
            total += group * _SCALES[word]
            group = 0
        elif word == "hundred":
            group *= 100
        elif word in ("a", "an"):
            group = 1
        elif word != "and":
            group += WORD_VALUES[word]
    return total + group
