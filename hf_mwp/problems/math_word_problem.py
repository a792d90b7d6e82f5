"""Math word problem, and the checks that it can be solved."""

import re
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

from ..expressions import Expression, ExpressionError
from ..expressions.numbers import MAX_NUMBER_LENGTH, to_half_width
from .answer import answer_value
from .control_characters import without_controls
from .equation_alignment import align_literals, group_numbers
from .numbers.masked_text import MaskedText, mask_numbers, unreadable_numbers


MAX_TEXT_LENGTH = 100_000  # characters, far more than any model reads
TOO_LONG = f"the text has more than {MAX_TEXT_LENGTH:,} characters"

_SPACE = re.compile(r"\s+")


class ProblemError(ValueError):
    """A math word problem lacks a field, or has one that cannot be read."""


@dataclass(frozen=True)
class MathWordProblem:
    """
    A math word problem as a data set states it. Numbers, tree and values are computed on first use.

    Args:
        text (`str`): The text as written; control characters and escape sequences of terminals are removed.
        equation (`str`, *optional*): Its solution, in any dialect of [`~hf_mwp.expressions.Expression.from_infix`], or
            over slots.
        answer (`str`, *optional*): Its answer as written: `"20"`, `"((7)/(4))"`, `"9 (apples)"`.
        id (`str`, *optional*, defaults to `""`): Name of the problem in its data set.
        language (`str`, *optional*, defaults to `"zh"`): `"zh"` or `"en"`.
        parse_number_words (`bool`, *optional*): Count number words as numbers; by default in English, not in Chinese.
        context (`str`, *optional*, defaults to `""`): Name of the context that several questions share.
        kind (`str`, *optional*, defaults to `""`): Kind of problem in its data set, for separate accuracies.

    Raises:
        TypeError: `text` is not a string.

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

    def __post_init__(self):
        if not isinstance(self.text, str):
            raise TypeError(f"`text` must be a string, got {type(self.text).__name__}: {self.text!r:.80}.")
        object.__setattr__(self, "text", without_controls(self.text))

    @property
    def is_too_long(self) -> bool:
        """Return whether the text has more than `MAX_TEXT_LENGTH` characters, and is not read."""
        return len(self.text) > MAX_TEXT_LENGTH

    @cached_property
    def masked(self) -> MaskedText:
        """Text with masked numbers; `ProblemError` if it has more than `MAX_TEXT_LENGTH` characters."""
        self._check_length()
        return mask_numbers(self.text, self.language, self.parse_number_words)

    @cached_property
    def numbers(self) -> tuple[str, ...]:
        """Numbers as literals: as written (`"80%"`, `"-5"`), in digits if they are words, and in brackets if they are
        bare fractions (`"(1/2)"`)."""
        return tuple(mention.literal for mention in self.masked.mentions)

    @cached_property
    def unreadable_numbers(self) -> tuple[str, ...]:
        """Numbers in digits that stay in the text because they are too long or too large."""
        self._check_length()
        return tuple(unreadable_numbers(self.text, self.language))

    @cached_property
    def values(self) -> tuple[Fraction, ...]:
        """Exact values of the numbers."""
        return tuple(mention.value for mention in self.masked.mentions)

    @cached_property
    def number_groups(self) -> tuple[int, ...]:
        """For each number the index of the first one with the same value and kind. Labels name the first; a loss over
        the group counts all of them as right."""
        return group_numbers(self.masked.mentions)

    @cached_property
    def masked_key(self) -> str:
        """Masked text in half-width characters without white space, equal for problems that differ only in numbers."""
        return _SPACE.sub("", to_half_width(self.masked.text()))

    @cached_property
    def expression(self) -> Expression:
        """Tree of the equation over slots `N0`, `N1`, ... and constants, numbers that the text lacks. `ProblemError`
        if there is no equation, `ExpressionError` if it cannot be read."""
        if self.equation is None or not self.equation.strip():
            raise ProblemError(f"problem {self.id!r} has no equation, so it has no expression")
        bare = (mention.text for mention in self.masked.mentions if mention.is_bare_fraction)
        written = Expression.from_infix(self.equation, (*self.numbers, *bare))
        return align_literals(written, self.masked.mentions)

    @cached_property
    def equation_value(self) -> Fraction | float:
        """Value of the equation; errors as of [`~MathWordProblem.expression`] and [`Expression.evaluate`]."""
        return self.expression.evaluate(self.values)

    @cached_property
    def answer_value(self) -> Fraction | float | None:
        """Value of the annotated answer ([`~hf_mwp.problems.answer_value`]); `None` if there is none."""
        return None if self.answer is None else answer_value(self.answer)

    def _check_length(self) -> None:
        if self.is_too_long:
            raise ProblemError(f"problem {self.id!r} cannot be read: {TOO_LONG}")

    def agrees(self, tolerance: float = 1e-4) -> bool:
        """
        Return whether the equation gives the annotated answer, closely enough for a training example: annotators
        round. Scores of solvers are stricter ([`~hf_mwp.metrics.answers_match`]).

        Args:
            tolerance (`float`, *optional*, defaults to 1e-4): Largest difference, relative to the answer if that is
                over 1 in size, absolute otherwise.

        Returns:
            `bool`: `False` also if there is no answer, or no equation that has a value.
        """
        if self.answer_value is None:
            return False
        try:
            value = self.equation_value
        except (ExpressionError, ProblemError):
            return False
        answer = float(self.answer_value)
        return abs(float(value) - answer) <= tolerance * max(1.0, abs(answer))


def refusal(problem: MathWordProblem) -> str | None:
    """
    Return the reason, as a sentence, why solvers do not answer a problem; `None` if it can be solved. A problem
    without numbers is refused, because an equation of constants alone would be a guess.
    """
    if problem.is_too_long:
        return f"{TOO_LONG[0].upper()}{TOO_LONG[1:]}: shorten it."
    try:
        problem.text.encode("utf-8")
    except UnicodeEncodeError as error:
        code = ord(problem.text[error.start])
        return f"The text is not valid Unicode: half a surrogate pair (U+{code:04X}) at position {error.start}."
    if not problem.text.strip():
        return "The text is empty."
    if problem.unreadable_numbers:
        listed = ", ".join(each if len(each) <= 20 else f"{each[:20]}..." for each in problem.unreadable_numbers)
        return f"The text has a number that cannot be read: {listed}. Numbers have up to {MAX_NUMBER_LENGTH} digits."
    if not problem.numbers:
        return "No number was found in the text, so there is nothing to calculate with."
    return None
