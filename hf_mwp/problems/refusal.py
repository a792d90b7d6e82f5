"""What no solver is asked."""

from .math_word_problem import MathWordProblem


def refusal(problem: MathWordProblem) -> str | None:
    """
    Why a problem gets no answer, whoever solves it: pipeline, command line, evaluation and labelling ask here.

    Without a number in the text there is nothing to calculate with; an equation of constants alone would be a guess.

    Args:
        problem ([`MathWordProblem`]):
            The problem.

    Returns:
        `str`, a sentence for the reader, or `None` if the problem can be solved.
    """
    if not problem.text.strip():
        return "The text is empty."
    if not problem.numbers:
        return "No number was found in the text, so there is nothing to calculate with."
    return None
