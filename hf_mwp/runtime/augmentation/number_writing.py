"""Augmentation with other ways to write numbers: words, fractions and percentages as people write them."""

import random
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from fractions import Fraction

from hf_mwp.runtime.numbers.number_mention import NumberMention
from hf_mwp.runtime.numbers.number_words import MAX_NUMBER, in_chinese, in_english
from hf_mwp.runtime.problems.clauses import UNITS
from hf_mwp.runtime.problems.math_word_problem import MathWordProblem
from hf_mwp.utils.checked_types import checked

from .rewriting import rewrite_share


ONE_NUMBER = 0.5
"""Share of the problems of which a single number is rewritten; in the others, all numbers that can be."""

Form = Callable[[NumberMention, str], str | None]
"""Writes a number in another form, or returns `None`; arguments are the number and the text behind it."""

MAX_DENOMINATOR = 100
"""Largest denominator of a fraction that is rewritten."""

_CURRENCIES = ("$", "£", "€", "¥", "￥")
_MEASURE_WORD = re.compile(rf"[{UNITS}]|[千毫分厘平立]|小时")
_PLAIN = re.compile(r"\d+(?:\.\d+)?", flags=re.ASCII)


@checked
def rewrite_numbers(
    problems: Iterable[MathWordProblem], seed: int = 0, share: float = 1.0
) -> Iterator[MathWordProblem | None]:
    """
    Write numbers of each problem in other forms: 3个 as 三个, 2 as 两, 1/2 as 二分之一, 25% as 百分之二十五, 0.5 as
    1/2, 12500 as 12,500; in English 25 as "twenty-five", 1/2 as "half", 2/3 as "two thirds".

    The labels are exact: a new text is used only if the reading `"people"` finds the same values, in the same order,
    as in the old. The result depends only on the arguments.

    Args:
        problems (iterable of [`MathWordProblem`]): Problems with an equation.
        seed (`int`, *optional*, defaults to 0): Seed for the choice of problems, numbers and forms.
        share (`float`, *optional*, defaults to 1.0): Share of the problems whose numbers are rewritten.

    Yields:
        [`MathWordProblem`] or `None`: The new problem, with `number_reading="people"` and `-W` appended to its id, or
        `None` if the problem is not chosen, no number has another form or the equation does not give the answer.

    Example:

    ```python
    >>> problem = MathWordProblem("小明有3个苹果，小红有5个，一共有多少个？", "x=3+5", "8")
    >>> next(rewrite_numbers([problem])).text
    ```
    """
    return rewrite_share(_rewrite, problems, seed, share)


def _rewrite(problem: MathWordProblem, rng: random.Random) -> MathWordProblem | None:
    if not problem.agrees():
        return None
    indices = list(range(len(problem.masked.mentions)))
    rng.shuffle(indices)
    rewritten = problem
    is_single = rng.random() < ONE_NUMBER
    for index in indices:
        new = _rewrite_number(rewritten, index, rng)
        if new is None:
            continue
        rewritten = new
        if is_single:
            break
    if rewritten is problem:
        return None
    return replace(rewritten, id=f"{problem.id}-W", context="", kind="")


def _rewrite_number(problem: MathWordProblem, index: int, rng: random.Random) -> MathWordProblem | None:
    """Return the problem with one number in another form, or `None` if no form is read as the same number."""
    mention = problem.masked.mentions[index]
    before = problem.text[: mention.start]
    rest = problem.text[mention.end :]
    new_forms = []
    for form in _FORMS[problem.language]:
        new = form(mention, rest)
        if new is None or new == mention.text:
            continue
        # Nobody writes "$fifty".
        if new[0].isalpha() and before.endswith(_CURRENCIES):
            continue
        new_forms.append(new)
    rng.shuffle(new_forms)
    for new in new_forms:
        candidate = replace(problem, text=f"{before}{new}{rest}")
        if candidate.values != problem.values:
            continue
        equation = problem.expression.bind(candidate.numbers).to_infix()
        candidate = candidate.with_equation(f"x={equation}")
        if candidate.agrees() and candidate.expression == problem.expression:
            return candidate
    return None


def _whole(mention: NumberMention) -> int | None:
    """Return the value of a whole number in plain digits, or `None`."""
    if not _PLAIN.fullmatch(mention.text) or mention.value.denominator != 1 or mention.value > MAX_NUMBER:
        return None
    return int(mention.value)


def _proper_fraction(mention: NumberMention) -> Fraction | None:
    """Return the value of a fraction below 1, neither a percentage nor with a large denominator, or `None`."""
    if mention.is_percent or not 0 < mention.value < 1 or mention.value.denominator > MAX_DENOMINATOR:
        return None
    return mention.value


def _chinese_numeral(mention: NumberMention, rest: str) -> str | None:
    """三, 十二; 两 before a measure word (两个, 两千米)."""
    number = _whole(mention)
    if number is None or number == 1 or not _MEASURE_WORD.match(rest):
        return None
    return "两" if number == 2 else in_chinese(number)


def _chinese_fraction(mention: NumberMention, rest: str) -> str | None:
    """二分之一."""
    value = _proper_fraction(mention)
    if value is None:
        return None
    return f"{in_chinese(value.denominator)}分之{in_chinese(value.numerator)}"


def _chinese_fraction_in_digits(mention: NumberMention, rest: str) -> str | None:
    """2分之1."""
    value = _proper_fraction(mention)
    if value is None:
        return None
    return f"{value.denominator}分之{value.numerator}"


def _chinese_percentage(mention: NumberMention, rest: str) -> str | None:
    """百分之二十五."""
    percent = mention.value * 100
    if not mention.is_percent or percent.denominator != 1 or not 0 < percent <= 100:
        return None
    return f"百分之{in_chinese(int(percent))}"


def _chinese_percentage_in_digits(mention: NumberMention, rest: str) -> str | None:
    """百分之25."""
    if not mention.is_percent:
        return None
    return f"百分之{mention.text[:-1]}"


def _chinese_times(mention: NumberMention, rest: str) -> str | None:
    """四倍."""
    number = _whole(mention)
    if number is None or number < 2 or not rest.startswith("倍"):
        return None
    return "两" if number == 2 else in_chinese(number)


def _english_words(mention: NumberMention, rest: str) -> str | None:
    """twenty-five, not before a unit symbol or a sign (25 %, 25cm)."""
    number = _whole(mention)
    if number is None or number < 2 or not re.match(r"[ -][A-Za-z]{2}|[.,?]", rest):
        return None
    return in_english(number)


_DENOMINATORS = {2: "half", 3: "third", 4: "quarter", 5: "fifth", 6: "sixth", 8: "eighth", 10: "tenth"}


def _english_fraction(mention: NumberMention, rest: str) -> str | None:
    """half, two thirds."""
    value = _proper_fraction(mention)
    if value is None or value.denominator not in _DENOMINATORS:
        return None
    name = _DENOMINATORS[value.denominator]
    if value.numerator > 1:
        return f"{in_english(value.numerator)} {name}s"
    return "half" if name == "half" else f"one {name}"


def _bare_fraction(mention: NumberMention, rest: str) -> str | None:
    """3/4."""
    value = _proper_fraction(mention)
    if value is None:
        return None
    return f"{value.numerator}/{value.denominator}"


def _latex_fraction(mention: NumberMention, rest: str) -> str | None:
    r"""\frac{3}{4}."""
    value = _proper_fraction(mention)
    if value is None:
        return None
    return rf"\frac{{{value.numerator}}}{{{value.denominator}}}"


def _grouped(mention: NumberMention, rest: str) -> str | None:
    """12,500."""
    number = _whole(mention)
    if number is None or number < 1000:
        return None
    return f"{number:,}"


_FORMS: dict[str, tuple[Form, ...]] = {
    "zh": (
        _chinese_numeral,
        _chinese_fraction,
        _chinese_fraction_in_digits,
        _chinese_percentage,
        _chinese_percentage_in_digits,
        _chinese_times,
        _bare_fraction,
        _latex_fraction,
        _grouped,
    ),
    "en": (_english_words, _english_fraction, _bare_fraction, _latex_fraction, _grouped),
}
