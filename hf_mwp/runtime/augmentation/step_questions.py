"""Function that makes several questions on one context, from the steps of a worked answer."""

import re
from collections import Counter
from dataclasses import replace

from hf_mwp.runtime.problems.math_word_problem import MathWordProblem
from hf_mwp.runtime.problems.worked_steps import STEP, StepError, compose_steps
from hf_mwp.utils.checked_types import checked

from .english_rewording import SENTENCE_END, ask_in_english, capitalized


# A step in a worked answer: "48/2 = $<<48/2=24>>24", with "x" as a multiplication sign.
_CALCULATION = re.compile(
    r"(?:(?:[-\d.,/()%\s+*×÷$€£]|(?<![A-Za-z])x(?![A-Za-z]))*=\s*)?(?P<currency>[$€£]?)\s*<<[^<>]*>>\s*[$€£]?"
    r"(?P<number>\d(?:[\d.,]*\d)?)(?P<percent>\s*%)?"
)
_OTHER_NUMBERS = re.compile(r"[\d<>=+*/×÷]")
_ASKS = re.compile(r"\?|\bhow (?:many|much)\b", re.IGNORECASE)
_CONNECTIVE = re.compile(r"(?i)^(?:and|but|so|then|thus|therefore|hence|(?:this|that) means)(?: that)?,?\s+")
_COUNTED = re.compile(r"\s+[A-Za-z]")
_MIN_WORDS = 5  # of a question


@checked
def ask_steps(problem: MathWordProblem, worked: str) -> list[MathWordProblem]:
    """
    Make problems that ask for the results of the steps in a worked answer, as in GSM8K, instead of the final answer.
    Trained on several questions for each context, a solver learns to read the question (UnbiasedMWP: Yang et al.,
    2022). The rules are not from a paper.

    A line "Natalia sold 48/2 = <<48/2=24>>24 clips in May." becomes the question "How many clips did Natalia sell in
    May?" or, if its verb is not known, "Natalia sold how many clips in May?". The equation is composed of the steps
    that lead to the result. The last line is left out, because it answers the question of the problem, and so are
    lines with several steps or further numbers, steps with a number that only the question of the problem states, and
    lines that give the same question.

    Args:
        problem ([`MathWordProblem`]): English problem whose last sentence is its only question.
        worked (`str`): The worked answer, with a line and a step in double angle brackets for each result.

    Returns:
        `list[MathWordProblem]`: New problems with equation and answer, in the order of the steps.

    Example:

    ```python
    >>> text = "Natalia sold 48 clips in April, and half as many in May. How many clips did she sell?"
    >>> worked = "Natalia sold 48/2 = <<48/2=24>>24 clips in May.\\nShe sold <<48+24=72>>72 clips in all."
    >>> (new,) = ask_steps(MathWordProblem(text, language="en"), worked)
    >>> new.text.rpartition(". ")[2], new.equation, new.answer
    ('How many clips did Natalia sell in May?', 'x=48/2', '24')
    ```
    """
    *context, question = SENTENCE_END.split(problem.text.strip())
    if not context or not question.endswith("?") or _ASKS.search(" ".join(context)):
        return []
    lines = [line.strip() for line in worked.splitlines() if line.strip()]
    new_problems: list[MathWordProblem] = []
    steps: list[str] = []
    for line in lines[:-1]:
        steps_of_line = STEP.findall(line)
        steps += steps_of_line
        if len(steps_of_line) != 1:
            continue
        new_question = _ask(line)
        if new_question is None:
            continue
        text = " ".join([*context, new_question])
        answer = re.sub(r"[$€£,\s]", "", steps[-1].rpartition("=")[2])
        new = replace(problem, text=text, answer=answer, id=f"{problem.id}-S{len(steps)}", context="", kind="")
        worked_steps = " ".join(f"<<{step}>>" for step in steps)
        try:
            equation = compose_steps(new, worked_steps, drop_unused=True)
        except StepError:
            continue
        new = new.with_equation(f"x={equation.to_infix()}")
        # The numbers in the question of the problem are not in the new text.
        if not new.constants.intersection(problem.values).difference(new.values):
            new_problems.append(new)
    num_problems_of_text = Counter(new.text for new in (problem, *new_problems))
    return [new for new in new_problems if num_problems_of_text[new.text] == 1]


def _ask(line: str) -> str | None:
    """Turn a line with a step into a question for its result. Returns `None` if the line has further numbers."""
    match = _CALCULATION.search(line)
    if match is None:
        return None
    before = _CONNECTIVE.sub("", line[: match.start()].rstrip(), count=1)
    after = line[match.end() :].rstrip(" .")
    if _OTHER_NUMBERS.search(before + after):
        return None
    currency = match["currency"]
    if not match["percent"]:
        clause = f"{before} {currency}".lstrip()
        number_end = len(clause) + len(match["number"])
        reworded = ask_in_english(f"{clause}{match['number']}{after}.", len(clause), number_end)
        if reworded is not None:
            return reworded[1]
    unknown = "how much"
    if match["percent"]:
        unknown = "what percentage"
    elif not currency and _COUNTED.match(after):
        unknown = "how many"
    question = f"{before} {unknown}{after}?".lstrip()
    if len(question.split()) < _MIN_WORDS:
        return None
    return capitalized(question)
