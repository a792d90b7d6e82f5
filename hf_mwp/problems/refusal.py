"""Texts that no solver reads."""

from ..expressions.numbers import MAX_NUMBER_LENGTH
from .math_word_problem import TOO_LONG, MathWordProblem


def refusal(problem: MathWordProblem) -> str | None:
    """
    Return the reason, as a sentence, why no solver answers a problem; `None` if it can be solved.
    Pipeline, command line, evaluation and labelling ask here.

    Without a number in the text there is nothing to calculate with; an equation of constants alone would be a guess.
    """
    if problem.is_too_long:
        return f"{TOO_LONG[0].upper()}{TOO_LONG[1:]}: shorten it."
    try:
        problem.text.encode("utf-8")
    except UnicodeEncodeError as error:
        code = ord(problem.text[error.start])
        return f"The text is no valid Unicode: half a surrogate pair (U+{code:04X}) at position {error.start}."
    if not problem.text.strip():
        return "The text is empty."
    if problem.unreadable_numbers:
        listed = ", ".join(
            number if len(number) <= 20 else f"{number[:20]}..." for number in problem.unreadable_numbers
        )
        return f"The text has a number that cannot be read: {listed}. One of up to {MAX_NUMBER_LENGTH} digits can."
    if not problem.numbers:
        return "No number was found in the text, so there is nothing to calculate with."
    return None
