"""A math word problem and what follows from its text, equation and answer."""

import re
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

from ..expressions import Expression, ExpressionError
from ..expressions.numbers import to_half_width
from .answer import answer_value
from .control_characters import without_controls
from .equation_alignment import align_literals, group_numbers
from .errors import ProblemError
from .numbers.masked_text import MaskedText, mask_numbers
from .numbers.number_finding import unreadable_numbers


MAX_TEXT_LENGTH = 100_000
"""Characters of the longest text that is read, far above what any model takes in."""

TOO_LONG = f"the text has more than {MAX_TEXT_LENGTH:,} characters"

_SPACE = re.compile(r"\s+")


@dataclass(frozen=True)
class MathWordProblem:
    """
    One problem. Only what a data set states is stored; everything else is computed from it on first use.

    Args:
        text (`str`): The problem in words, as written; control characters and escape sequences of terminals are left
            out.
        equation (`str`, *optional*): Its solution, in any dialect that [`~hf_mwp.expressions.Expression.from_infix`]
            reads, or over slots.
        answer (`str`, *optional*): Its answer as written: `"20"`, `"((7)/(4))"`, `"9 (apples)"`.
        id (`str`, *optional*, defaults to `""`): Name of the problem in its data set.
        language (`str`, *optional*, defaults to `"zh"`): `"zh"` or `"en"`.
        parse_number_words (`bool`, *optional*): Count number words as numbers; by default in English, not in Chinese.
        context (`str`, *optional*, defaults to `""`): Name of the context that a question shares with others.
        kind (`str`, *optional*, defaults to `""`): Kind of problem in its data set, by which figures are given.

    Raises:
        TypeError: a `text` that is none.

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
        """Return whether the text has more than `MAX_TEXT_LENGTH` characters, so that nothing is looked for in it."""
        return len(self.text) > MAX_TEXT_LENGTH

    @cached_property
    def masked(self) -> MaskedText:
        """
        The text with its numbers taken out.

        Raises:
            ProblemError: if the text has more than `MAX_TEXT_LENGTH` characters.
        """
        self._check_length()
        return mask_numbers(self.text, self.language, self.parse_number_words)

    @cached_property
    def numbers(self) -> tuple[str, ...]:
        """The numbers as literals: as written (`"80%"`, `"-5"`), in digits if in words (`"7"` for "seven"), and in
        brackets if a bare fraction (`"(1/2)"`)."""
        return tuple(mention.literal for mention in self.masked.mentions)

    @cached_property
    def unreadable_numbers(self) -> tuple[str, ...]:
        """Numbers in digits that are left in the text since they are too long or too large."""
        self._check_length()
        return tuple(unreadable_numbers(self.text, self.language))

    @cached_property
    def values(self) -> tuple[Fraction, ...]:
        """The numbers' exact values."""
        return tuple(mention.value for mention in self.masked.mentions)

    @cached_property
    def number_groups(self) -> tuple[int, ...]:
        """
        For each number the index of the first one with the same value and kind.

        A number that occurs twice keeps both occurrences; the label names the first, and a loss over the group counts
        either as right.
        """
        return group_numbers(self.masked.mentions)

    @cached_property
    def masked_key(self) -> str:
        """
        Masked text for finding problems that differ in their numbers alone: half-width, without white space.

        White space is dropped since data sets split words in different ways.
        """
        return _SPACE.sub("", to_half_width(self.masked.text()))

    @cached_property
    def expression(self) -> Expression:
        """
        The equation as a tree over slots `N0`, `N1`, ... and constants, which are numbers that the text lacks.

        Raises:
            ProblemError: if there is no equation.
            ExpressionError: if it cannot be read.
        """
        if self.equation is None or not self.equation.strip():
            raise ProblemError(f"problem {self.id!r} has no equation: an expression needs one")
        bare = (mention.text for mention in self.masked.mentions if mention.is_bare_fraction)
        written = Expression.from_infix(self.equation, (*self.numbers, *bare))
        return align_literals(written, self.masked.mentions)

    @cached_property
    def equation_value(self) -> Fraction | float:
        """The value of the equation; errors as of [`~MathWordProblem.expression`] and [`Expression.evaluate`]."""
        return self.expression.evaluate(self.values)

    @cached_property
    def answer_value(self) -> Fraction | float | None:
        """The annotated answer's value, see [`~hf_mwp.problems.answer_value`]; `None` if there is none."""
        return None if self.answer is None else answer_value(self.answer)

    def _check_length(self) -> None:
        if self.is_too_long:
            raise ProblemError(f"problem {self.id!r} cannot be read: {TOO_LONG}")

    def agrees(self, tolerance: float = 1e-4) -> bool:
        """
        Return whether the equation gives the annotated answer, as far as an example to learn from needs it.

        Annotators round: 1010000 is taken for 1009899 here. Solvers are scored by a stricter rule, see
        [`~hf_mwp.metrics.answers_match`].

        Args:
            tolerance (`float`, *optional*, defaults to 1e-4): Largest difference, relative to the answer if that is
                over 1 in size, absolute otherwise.

        Returns:
            `bool`: also `False` if there is no answer, or the equation is missing or cannot be read or computed.
        """
        if self.answer_value is None:
            return False
        try:
            value = self.equation_value
        except (ExpressionError, ProblemError):
            return False
        answer = float(self.answer_value)
        return abs(float(value) - answer) <= tolerance * max(1.0, abs(answer))
