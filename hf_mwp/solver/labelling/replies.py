"""Function that reads the equation in a language model's reply. Replies are parsed, never executed."""

import re
from fractions import Fraction

from hf_mwp.runtime.expressions import Expression, ExpressionError, parse_number
from hf_mwp.runtime.expressions.numbers import to_half_width
from hf_mwp.runtime.problems import MathWordProblem, ProblemError
from hf_mwp.runtime.problems.worked_steps import CONSTANTS as CONSTANTS_OF_STEPS
from hf_mwp.runtime.problems.worked_steps import write_percentages


MAX_REPLY_LENGTH = 20_000
MAX_LINE_LENGTH = 1000
MAX_EQUATION_LENGTH = 300

CONSTANTS = CONSTANTS_OF_STEPS | frozenset(map(Fraction, "3.14 180 360 366 10000".split()))
"""Numbers that an equation may use even if the text lacks them."""

_THOUGHT = re.compile(r"\A.*</think>|<think>.*\Z", re.DOTALL)
# The word before an equation: "Equation: 4+2", "**算式**：4+2", "The answer is 4+2".
_MARKER = re.compile(
    r"\A\W*(?:(?:the|final)\s+)*(?:综合算式|算式|列式|方程式?|答案?|equation|expression|formula|answer)"
    r"(?:(?:\W*?(?:\bis\b|[是为]))?\W*?[:：=]|\W*?(?:\bis\b|[是为]))",
    re.IGNORECASE,
)
_LATEX = (
    # A fraction of two numbers is a literal, as in the texts.
    (re.compile(r"\\[dt]?frac\s*\{(\d+)\}\s*\{(\d+)\}"), r"(\1/\2)"),
    (re.compile(r"\\[dt]?frac\s*\{([^{}]*)\}\s*\{([^{}]*)\}"), r"((\1)/(\2))"),
    (re.compile(r"\\(?:times|cdot)(?![a-zA-Z])"), "*"),
    (re.compile(r"\\div(?![a-zA-Z])"), "/"),
    (re.compile(r"\\(?:left|right)(?![a-zA-Z])|\\[,;! ]"), ""),
    (re.compile(r"\\%"), "%"),
    (re.compile(r"\\(?:boxed|text|mathrm)\s*(?=\{)"), ""),
)
_UNKNOWN = re.compile(r"\A\s*[^\W\d]\w*\s*=")
# A stated result, also with a unit: "6", "6个苹果", "1,234.5 (kg)".
_RESULT = re.compile(r"\s*[-≈]?\s*[\d(][\d.,/()%％]*\s*[^\d+*/=^]*")
_FRACTION = re.compile(r"\((\d+)/(\d+)\)", flags=re.ASCII)
_OPERATION = re.compile(r"[\d)\]}%]\s*[-+*/^:]\s*[-\d(\[{.]")


def read_reply(reply: str, problem: MathWordProblem) -> Expression | None:
    """
    Return the equation in a reply as a tree with number slots, or `None` if there is none that can be used.

    The equation is in the last line that begins with a word such as `Equation:` or `算式：` or, if there is no such
    line, in the only line that is an equation. `4+2`, `x=4+2`, `4+2=6个` and `$4 \\times 2$` are read. It must have at
    least one operator and one number of the text; its other numbers must be in `CONSTANTS`. Equations with units,
    unknowns or without a value are not used, nor are the steps of a derivation, which need not be one equation.
    """
    if len(reply) > MAX_REPLY_LENGTH:
        return None
    marked = []
    unmarked = []
    for line in _THOUGHT.sub("", reply).splitlines():
        marker = _MARKER.match(line)
        if marker is not None:
            marked.append(line[marker.end() :])
        else:
            unmarked.append(line)
    for line in reversed(marked):
        equation = _equation_text(line)
        if equation:
            return _read_equation(equation, problem)
    equations = {_equation_text(line) for line in unmarked} - {""}
    if len(equations) != 1:
        return None
    return _read_equation(equations.pop(), problem)


def _equation_text(line: str) -> str:
    """Return the side to compute of the equation in a line, or `""` if the line contains no operation."""
    if len(line) > MAX_LINE_LENGTH:
        return ""
    text = line
    for pattern, replacement in _LATEX:
        text = pattern.sub(replacement, text)
    text = to_half_width(text.replace("$", "").replace("\\(", "").replace("\\)", "").replace("`", ""))
    text = text.strip(" \t*_。.;；,，")
    text = _UNKNOWN.sub("", text)
    sides = text.split("=")
    if all(_RESULT.fullmatch(side) for side in sides[1:]):
        text = sides[0]
    return text.strip() if _OPERATION.search(text) and len(text) <= MAX_EQUATION_LENGTH else ""


def _bracket_fractions(equation: str, problem: MathWordProblem) -> str:
    """Write `1/5` as the literal `(1/5)` if the text of the problem does, so that it becomes a number of the text."""
    for number in set(problem.numbers):
        fraction = _FRACTION.fullmatch(number)
        if fraction is not None:
            division = rf"{fraction[1]}\s*/\s*{fraction[2]}"
            # Without brackets, it is not a number in a/1/5, a^1/5 and 1/5^2.
            spellings = rf"\(\s*{division}\s*\)|(?<![\d./^]){division}(?![\d.%^])"
            equation = re.sub(spellings, number, equation)
    return equation


def _read_equation(text: str, problem: MathWordProblem) -> Expression | None:
    equation = _bracket_fractions(write_percentages(text, problem), problem)
    try:
        expression = problem.with_equation(equation).expression
        expression.evaluate(problem.values)
    except (ExpressionError, ProblemError):
        return None
    leaves = list(expression.leaves())
    if expression.is_leaf or not any(leaf.is_slot for leaf in leaves):
        return None
    constants = {parse_number(leaf.token) for leaf in leaves if not leaf.is_slot}
    return expression if constants <= CONSTANTS else None
