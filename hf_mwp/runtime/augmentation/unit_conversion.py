"""Augmentation with unit conversions: a quantity or the question in a unit that the equation must convert."""

import random
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from fractions import Fraction

from hf_mwp.runtime.expressions import Expression
from hf_mwp.runtime.expressions.numbers import literal_of
from hf_mwp.runtime.numbers.unit_tables import UNIT_PAIRS, unit_names
from hf_mwp.runtime.problems.math_word_problem import MathWordProblem
from hf_mwp.utils.checked_types import checked


MAX_DECIMALS = 3
"""Maximum number of decimals of a converted quantity or answer."""
MIN_VALUE = Fraction(1, 10)
MAX_VALUE = 10**6
"""Limits of a converted quantity or answer."""


@dataclass(frozen=True)
class Conversion:
    """
    A unit that a text uses, and a unit to replace it.

    Args:
        names (`tuple[str, ...]`): Names of the unit in the text; in English, plural and singular.
        new_names (`tuple[str, ...]`): Names of the new unit, in the same order.
        ratio (`Fraction`): Number of new units in a unit: 1000 from kilometres to metres, 1/60 from minutes to hours.
    """

    names: tuple[str, ...]
    new_names: tuple[str, ...]
    ratio: Fraction

    def new_name(self, name: str) -> str:
        """Return the new name for a name in the text, in the plural if that is in the plural."""
        index = self.names.index(name)
        return self.new_names[min(index, len(self.new_names) - 1)]


@checked
def convert_units(problems: Iterable[MathWordProblem], seed: int = 0) -> Iterator[MathWordProblem | None]:
    """
    Express a quantity or the question of each problem in a different unit.

    "汽车每小时行60千米，3小时行多少千米？" becomes "汽车每小时行60千米，180分钟行多少千米？" with the equation
    `60*(180/60)`, or asks "3小时行多少米？" with the equation `60*3*1000`. Only problems whose question states a
    unit or counts things (多少千米, 多少道题, "how many hours"; not "how far") are used, because the unit of their
    answer stays clear. The labels are exact: the value of the equation is the answer. The result depends only on the
    arguments.

    Args:
        problems (iterable of [`MathWordProblem`]): Problems with equation and answer.
        seed (`int`, *optional*, defaults to 0): Seed for the choice of the quantity and the unit.

    Yields:
        [`MathWordProblem`] or `None`: The new problem, with `-U` appended to its id, or `None` if the equation does
        not give the answer or no unit can be converted.

    Example:

    ```python
    >>> problem = MathWordProblem("汽车每小时行60千米，3小时行多少千米？", "x=60*3", "180")
    >>> new = next(convert_units([problem]))
    >>> new.text, new.equation, new.answer
    ```
    """
    for index, problem in enumerate(problems):
        rng = random.Random(f"{seed} {index} {problem.text}")
        yield _convert(problem, rng)


def _convert(problem: MathWordProblem, rng: random.Random) -> MathWordProblem | None:
    if not problem.agrees():
        return None
    question = _find_question_unit(problem)
    if question is None:
        return None
    choices = list(_convert_quantities(problem))
    choices += _convert_question(problem, question)
    rng.shuffle(choices)
    for new in choices:
        if _is_sound(new, problem):
            return new
    return None


def _find_question_unit(problem: MathWordProblem) -> re.Match | None:
    """Return the match of the unit that the question asks for (group 1), if the text asks once."""
    matches = list(_QUESTION_UNITS[problem.language].finditer(problem.text))
    if len(matches) != 1:
        return None
    return matches[0]


def _convert_quantities(problem: MathWordProblem) -> Iterator[MathWordProblem]:
    """Yield the problem with each quantity in each other unit."""
    values = list(problem.values)
    for index, mention in enumerate(problem.masked.mentions):
        is_unique = values.count(mention.value) == 1 and mention.value not in problem.constants
        is_ordinal = problem.text[: mention.start].endswith("第")
        unit = _UNIT_BEHIND[problem.language].match(problem.text, mention.end)
        if unit is None or not is_unique or is_ordinal or mention.is_percent or mention.value <= 0:
            continue
        for conversion in _conversions(problem, unit[1]):
            value = mention.value * conversion.ratio
            if not _is_writable(value) or value in values:
                continue
            name = conversion.new_name(unit[1])
            if problem.language == "en":
                plural, singular = conversion.new_names
                name = singular if value == 1 else plural
            literal = literal_of(value)
            before = problem.text[: mention.start]
            gap = problem.text[mention.end : unit.start(1)]
            text = f"{before}{literal}{gap}{name}{problem.text[unit.end(1) :]}"
            numbers = [*problem.numbers]
            numbers[index] = literal
            slot = Expression(f"N{index}")
            expression = _replace(problem.expression, slot, _scaled(slot, 1 / conversion.ratio))
            equation = f"x={expression.bind(numbers).to_infix()}"
            yield replace(problem, text=text, equation=equation, id=f"{problem.id}-U", context="", kind="")


def _convert_question(problem: MathWordProblem, question: re.Match) -> Iterator[MathWordProblem]:
    """Yield the problem with a question that asks for each other unit."""
    answer = Fraction(problem.equation_value)
    for conversion in _conversions(problem, question[1]):
        value = answer * conversion.ratio
        if not _is_writable(value):
            continue
        name = conversion.new_name(question[1])
        text = f"{problem.text[: question.start(1)]}{name}{problem.text[question.end(1) :]}"
        expression = _scaled(problem.expression, conversion.ratio)
        equation = f"x={expression.bind(problem.numbers).to_infix()}"
        fields = {"text": text, "equation": equation, "answer": literal_of(value)}
        yield replace(problem, **fields, id=f"{problem.id}-U", context="", kind="")


def _conversions(problem: MathWordProblem, name: str) -> Iterator[Conversion]:
    """Yield the conversions of a unit that the equation does not contain already."""
    for conversion in _CONVERSIONS[problem.language]:
        factor = max(conversion.ratio, 1 / conversion.ratio)
        if name in conversion.names and factor not in problem.constants:
            yield conversion


def _is_writable(value: Fraction) -> bool:
    """Return whether a text can contain the value: neither small nor large, with few decimals."""
    return MIN_VALUE <= value <= MAX_VALUE and (value * 10**MAX_DECIMALS).denominator == 1


def _scaled(expression: Expression, ratio: Fraction) -> Expression:
    """Return the expression times `ratio`, as a product or a quotient with a whole number."""
    if ratio.denominator == 1:
        return Expression("*", expression, Expression(str(ratio.numerator)))
    return Expression("/", expression, Expression(str(ratio.denominator)))


def _replace(expression: Expression, old: Expression, new: Expression) -> Expression:
    """Return the expression with a leaf replaced wherever it occurs."""
    tokens = []
    for token in expression.to_prefix():
        if token == old.token:
            tokens += new.to_prefix()
        else:
            tokens.append(token)
    return Expression.from_prefix(tokens)


def _is_sound(new: MathWordProblem, old: MathWordProblem) -> bool:
    """Return whether the new equation gives the new answer, from numbers in the same places of the text."""
    return new.agrees() and len(new.numbers) == len(old.numbers) and new.expression != old.expression


def _make_conversions() -> dict[str, list[Conversion]]:
    conversions: dict[str, list[Conversion]] = {}
    for language, pairs in UNIT_PAIRS.items():
        conversions[language] = []
        for pair in pairs:
            conversions[language].append(Conversion(pair.larger, pair.smaller, Fraction(pair.factor)))
            conversions[language].append(Conversion(pair.smaller, pair.larger, Fraction(1, pair.factor)))
    return conversions


_CONVERSIONS = _make_conversions()
_UNIT_BEHIND = {
    # 3元5角 and 2小时30分钟 are quantities of two units.
    "zh": re.compile(rf"\s?({unit_names('zh')})(?![\d半角分秒形])"),
    "en": re.compile(rf" ({unit_names('en')})\b(?! (?:and )?\d)"),
}
_QUESTION_UNITS = {
    "zh": re.compile(rf"(?:多少|几)(?:个)?({unit_names('zh')}|(?!钱)[\u4e00-\u9fff])"),
    "en": re.compile(r"\bhow many ([a-z]+)\b", re.IGNORECASE),
}
"""Patterns of questions. Group 1 is the unit or, in Chinese, measure word that they ask for."""
