"""Parsing of annotated answers in the notations of datasets: value and precision."""

import re
from fractions import Fraction

from hf_mwp.runtime.expressions import NUMBER_PATTERN, Expression, ExpressionError, parse_number
from hf_mwp.runtime.expressions.notations import plain_notation
from hf_mwp.runtime.expressions.numbers import VULGAR, to_half_width
from hf_mwp.runtime.numbers.digit_numbers import literal_in_digits
from hf_mwp.runtime.numbers.masked_text import mask_numbers
from hf_mwp.utils.checked_types import checked
from hf_mwp.utils.language import language_of


# Math23k writes fractions ((7)/(4)) and mixed numbers 7((2)/(3)); other datasets write 7_2/3 and 7 2/3.
_MATH23K_FRACTION = re.compile(r"\(\((\d+)\)/\((\d+)\)\)", flags=re.ASCII)
_SPACED_MIXED = re.compile(r"(?<![\d./])(\d+)[ _]+(\d+/0*[1-9]\d*)(?![\d/]|\.\d)", flags=re.ASCII)
_WRITTEN = re.compile(rf"\d* ?[{VULGAR}]|(?<![\w.])\d+(?:\.\d+)?[eE][-+]?\d{{1,2}}(?![0-9A-Za-z_])")
_MIXED = re.compile(r"-?\d+\(\d+/\d+\)", flags=re.ASCII)
_ARITHMETIC = re.compile(r"[-+*/^:().%\d\s]+", flags=re.ASCII)
_NUMBER = re.compile(rf"(-?)[$€£¥￥]?(?:(\d+/0*[1-9]\d*)|({NUMBER_PATTERN.pattern}))", flags=re.ASCII)
# Text after the number: a remark in brackets, a remainder or an exponent (cm2), a separator of further answers.
_REMARK = re.compile(rf"(?<=\S)\s*\([^()]*[^\W\d_{VULGAR}][^()]*\)\Z")
_REMAINDER = re.compile(r"\s*(?<![A-Za-z])(?:r|R|余|…+|\.{3,})\s*\d+\s*\Z|(?<=m)\^?[23](?!\d)")
_FURTHER = re.compile(r"[;,，、\n]")
# Marks before the final answer of a worked solution: GSM8K has `####`.
_MARK = re.compile(r"####|答案?(?:是|为)?\s*[:：]|答案(?:是|为)|\b(?:final\s)?answer(?:\sis\b:?|\s?:)", re.IGNORECASE)
_BOXED = "\\boxed{"
_MAX_LENGTH = 1000


@checked
def answer_value(answer: str) -> Fraction | float | None:
    """
    Return the value of an annotated answer.

    Arithmetic is evaluated: `20`, `880.0`, `10%`, `(11/20)`, `((7)/(4))`, `1/2`, the ratio `3:2`, and the mixed
    numbers `7((2)/(3))`, `23(1/3)`, `2_1/5`, `2 1/5` and `2⅕`. LaTeX (`\\frac{1}{2}`, `50\\%`, `3{,}600`), grouped
    digits (`1 000`, `12'500`), 1又1/2, 百分之50 and 四分之三 are read as in texts. Of a worked solution, the answer is
    in the last `\\boxed{...}`, or after the last `####`, "the answer is" or 答：. In all other answers, the first
    number is the value: 9 in `9 (apples)`, 7 in `7 r4`, 5 in `5千克`, `x=5`, `[5, 3]` and `5;3`. An amount that is
    written with two numbers (`2小时30分`, `5元3角`) has no value, because it has one in each unit.
    Returns `None` if the answer cannot be parsed. Only the first 1,000 characters of the final answer are used.
    """
    return _read(answer)[0]


@checked
def answer_half_unit(answer: str) -> Fraction | None:
    """Return half a unit in the last written digit of an answer: 0.005 for `3.14` and `20%`. For `2/3` and
    `7((2)/(3))`, it is half of 1/3. Returns `None` if the answer is not a single number, such as `1200/(1+5%)`."""
    literal = _read(answer)[1]
    if literal is None:
        return None
    if "/" in literal:
        return Fraction(1, 2 * int(literal.rpartition("/")[2].rstrip(")")))
    decimals = len(literal.rstrip("%").partition(".")[2]) + 2 * literal.endswith("%")
    return Fraction(1, 2 * 10**decimals)


def final_answer(answer: str) -> str:
    """Return the final answer of a worked solution: the content of the last `\\boxed{...}`, or the text after the last
    mark (`####`, "the answer is", 答：). An answer without such a mark is returned unchanged."""
    start = answer.rfind(_BOXED)
    if start >= 0:
        return _braced(answer[start + len(_BOXED) :])
    for match in _MARK.finditer(answer):
        start = match.end()
    final = answer[start:] if start > 0 else answer
    return final if any(character.isalnum() for character in final) else answer


def _braced(text: str) -> str:
    """Return the text up to the bracket that closes an open one."""
    depth = 1
    for position, character in enumerate(text):
        depth += (character == "{") - (character == "}")
        if depth == 0:
            return text[:position]
    return text


def _read(answer: str) -> tuple[Fraction | float | None, str | None]:
    """Return the value of an answer and its literal without sign (`None` if the answer is a calculation)."""
    answer = final_answer(answer)[:_MAX_LENGTH]
    text = plain_notation(to_half_width(answer))
    text = _MATH23K_FRACTION.sub(r"(\1/\2)", text).strip()
    text = _REMARK.sub("", _SPACED_MIXED.sub(r"\1(\2)", text))
    text = _WRITTEN.sub(lambda match: literal_in_digits(match.group()), text)
    number = _NUMBER.search(text)
    if number is None:
        return _read_words(text)
    sign, fraction, literal = number.groups()
    # In a mixed number, the bracket follows the whole part without an operator, which the expression parser rejects.
    if _ARITHMETIC.fullmatch(text) and not _MIXED.fullmatch(text):
        try:
            return Expression.from_infix(text).evaluate(), (fraction or literal) if number.group() == text else None
        except ExpressionError:
            pass
    rest = _FURTHER.split(_REMAINDER.sub("", text[number.end() :]))[0]
    if any(character.isdecimal() for character in rest):
        return None, None
    try:
        value = Fraction(fraction) if fraction else parse_number(literal)
    except ExpressionError:
        return None, None
    return -value if sign else value, fraction or literal


def _read_words(text: str) -> tuple[Fraction | None, str | None]:
    """Return the value and literal of an answer in words (五个, "seven apples"), if it is the only number."""
    mentions = mask_numbers(text, language_of(text) or "zh", parse_number_words=True).mentions
    if len(mentions) != 1 or any(character.isdecimal() for character in text):
        return None, None
    return mentions[0].value, mentions[0].literal.removeprefix("-")
