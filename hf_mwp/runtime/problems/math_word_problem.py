"""The math word problem class, and a function that checks whether a problem can be solved."""

import re
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import Self

from hf_mwp.runtime.expressions import Expression, ExpressionError, parse_number
from hf_mwp.runtime.expressions.numbers import MAX_NUMBER_LENGTH, to_half_width
from hf_mwp.runtime.numbers.masked_text import DEFAULT_READING, MaskedText, mask_numbers
from hf_mwp.utils.checked_types import checked
from hf_mwp.utils.control_characters import without_controls

from .answer import answer_value
from .equation_alignment import align_literals
from .zero_divisors import zero_division


MAX_TEXT_LENGTH = 100_000  # characters, far above the maximum length of any model
TOO_LONG = f"the text has more than {MAX_TEXT_LENGTH:,} characters"

_SPACE = re.compile(r"\s+")


class ProblemError(ValueError):
    """Error raised if a field of a math word problem is missing or invalid, or a tagger cannot be used."""


@checked
@dataclass(frozen=True)
class MathWordProblem:
    """
    A math word problem from a dataset or a user. Numbers, expression tree and values are computed on first use.

    Args:
        text (`str`): The text as written. Control characters and terminal escape sequences are removed.
        equation (`str`, *optional*):
            The solution, in any notation of [`~hf_mwp.runtime.expressions.Expression.from_infix`], with the numbers of
            the text or with slots (`N0+N1`).
        answer (`str`, *optional*): The annotated answer as written: `"20"`, `"((7)/(4))"`, `"9 (apples)"`.
        id (`str`, *optional*, defaults to `""`): Identifier of the problem in the dataset.
        language (`str`, *optional*, defaults to `"zh"`): `"zh"` or `"en"`.
        parse_number_words (`bool`, *optional*): Whether number words ("seven") are numbers. By default they are in
            English, and in Chinese texts without digits.
        number_reading (`str`, *optional*, defaults to `"plain"`): Forms of numbers that are read, see
            [`~problems.find_numbers`].
        context (`str`, *optional*, defaults to `""`): Identifier of a context that several questions share.
        kind (`str`, *optional*, defaults to `""`): Problem category, for which a separate accuracy is reported.

    Raises:
        TypeError: If a field has the wrong type, for example `text` is not a string.

    Example:

    ```python
    >>> problem = MathWordProblem("Seven red and 2 green apples. How many?", "7+2=9", "9 (apples)", language="en")
    >>> problem.masked.text()
    '[NUM] red and [NUM] green apples. How many?'
    >>> problem.expression.to_prefix()
    ['+', 'N0', 'N1']
    >>> problem.agrees()
    True
    ```
    """

    text: str
    equation: str | None = None
    answer: str | None = None
    id: str = ""
    language: str = "zh"
    parse_number_words: bool | None = None
    context: str = ""
    kind: str = ""
    number_reading: str = DEFAULT_READING

    def __post_init__(self):
        object.__setattr__(self, "text", without_controls(self.text))

    def with_equation(self, equation: str) -> Self:
        """Return the problem with a different equation, without searching the numbers in the text again."""
        problem = replace(self, equation=equation)
        vars(problem)["masked"] = self.masked
        return problem

    @property
    def is_too_long(self) -> bool:
        """Return whether the text has more than `MAX_TEXT_LENGTH` characters, the maximum for parsing."""
        return len(self.text) > MAX_TEXT_LENGTH

    @cached_property
    def masked(self) -> MaskedText:
        """Return the text with masked numbers. Raises `ProblemError` if the text is too long."""
        if self.is_too_long:
            raise ProblemError(f"problem {self.id!r} cannot be parsed: {TOO_LONG}")
        return mask_numbers(self.text, self.language, self.parse_number_words, self.number_reading)

    @cached_property
    def numbers(self) -> tuple[str, ...]:
        """Return the numbers as literals: as written, but number words in digits, bare fractions in brackets."""
        return tuple(mention.literal for mention in self.masked.mentions)

    @cached_property
    def values(self) -> tuple[Fraction, ...]:
        """Return the exact values of the numbers."""
        return tuple(mention.value for mention in self.masked.mentions)

    @cached_property
    def number_groups(self) -> tuple[int, ...]:
        """Return, for each number, the index of the first number with the same value and kind (percentage or not).
        Labels contain the first; a loss over the group accepts all of them."""
        first: dict[tuple[Fraction, bool], int] = {}
        groups = []
        for index, mention in enumerate(self.masked.mentions):
            groups.append(first.setdefault((mention.value, mention.is_percent), index))
        return tuple(groups)

    @property
    def equation_literals(self) -> tuple[str, ...]:
        """Return the numbers as an equation may contain them: `numbers`, and bare fractions without brackets."""
        bare_fractions = [mention.literal[1:-1] for mention in self.masked.mentions if mention.is_bare_fraction]
        return (*self.numbers, *bare_fractions)

    @cached_property
    def masked_key(self) -> str:
        """Return the masked text in half-width characters without white space, equal if only numbers differ."""
        return _SPACE.sub("", to_half_width(self.masked.text()))

    @cached_property
    def expression(self) -> Expression:
        """Return the tree of the equation. Its leaves are slots `N0`, `N1`, ... and constants (numbers missing in the
        text). Raises `ProblemError` without an equation, and `ExpressionError` if the equation cannot be parsed."""
        if self.equation is None or not self.equation.strip():
            raise ProblemError(f"problem {self.id!r} has no equation: set `equation` to compute its expression")
        expression = Expression.from_infix(self.equation, self.equation_literals)
        return align_literals(expression, self.masked.mentions)

    @property
    def constants(self) -> set[Fraction]:
        """Return the values of the constants in the equation. Raises the errors of [`~MathWordProblem.expression`]."""
        return {parse_number(leaf.token) for leaf in self.expression.leaves() if not leaf.is_slot}

    @property
    def known_values(self) -> set[Fraction | float | None]:
        """Return the values of the numbers in the text, of the answer, and of the constants in the equation."""
        return {*self.values, self.answer_value, *self.constants}

    @cached_property
    def equation_value(self) -> Fraction | float:
        """Return the value of the equation. Raises the errors of `expression` and [`Expression.evaluate`]."""
        return self.expression.evaluate(self.values)

    @cached_property
    def answer_value(self) -> Fraction | float | None:
        """Return the value of the annotated answer, or `None` ([`~hf_mwp.runtime.problems.answer_value`])."""
        return None if self.answer is None else answer_value(self.answer)

    def agrees(self, tolerance: float = 1e-4) -> bool:
        """
        Return whether the equation evaluates to the annotated answer, closely enough for a training example, because
        annotators round. The scoring of solvers is stricter ([`~hf_mwp.metrics.answers_match`]). Without a value of
        the answer or the equation, returns `False`.

        Args:
            tolerance (`float`, *optional*, defaults to 1e-4): Maximum difference. It is relative if the absolute value
                of the answer exceeds 1, and absolute otherwise.
        """
        if self.answer_value is None:
            return False
        try:
            value = self.equation_value
        except (ExpressionError, ProblemError):
            return False
        answer = float(self.answer_value)
        return abs(float(value) - answer) <= tolerance * max(1.0, abs(answer))


@checked
def refusal(problem: MathWordProblem) -> str | None:
    """Return why solvers refuse a problem, or `None`. Without numbers, an equation would only be a guess, and a
    division by zero in the text has no value."""
    if problem.is_too_long:
        return f"The text has more than {MAX_TEXT_LENGTH:,} characters: shorten it."
    try:
        problem.text.encode("utf-8")
    except UnicodeEncodeError as error:
        code = ord(problem.text[error.start])
        return f"The text is not valid Unicode: half a surrogate pair (U+{code:04X}) at position {error.start}."
    if not problem.text.strip():
        return "The text is empty."
    if problem.masked.unreadable:
        numbers = ", ".join(map(_shortened, problem.masked.unreadable))
        return f"The text has a number that cannot be parsed: {numbers}. Use up to {MAX_NUMBER_LENGTH} digits 0 to 9."
    if not problem.numbers:
        return "The text contains no number to calculate with. Write its numbers in digits."
    division = zero_division(problem.text)
    if division:
        return f"The text divides by zero ({division}), which has no value."
    return None


def _shortened(number: str) -> str:
    return number if len(number) <= 20 else f"{number[:20]}..."
