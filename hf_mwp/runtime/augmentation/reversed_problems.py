"""Reverse-operation augmentation: the answer is given, and a number of the problem becomes the unknown."""

from collections import Counter
from dataclasses import replace
from fractions import Fraction

from hf_mwp.runtime.expressions import Expression
from hf_mwp.runtime.problems.linear_equations import solve_for_slots
from hf_mwp.runtime.problems.math_word_problem import MathWordProblem
from hf_mwp.utils.checked_types import checked

from .chinese_rewording import answer_in_chinese, reword_chinese
from .english_rewording import answer_in_english, reword_english


# Limits for an answer that becomes a number in a text: 1234567/891 apples would not be plausible.
MAX_ANSWER = 10**7
MAX_DENOMINATOR = 100

_REWORDINGS = {"zh": (answer_in_chinese, reword_chinese), "en": (answer_in_english, reword_english)}


@checked
def reverse_operations(problem: MathWordProblem) -> list[MathWordProblem]:
    """
    Create problems that state the answer of `problem` and ask for one of its numbers (reverse-operation augmentation:
    Liu et al., RODA, IEEE/ACM TASLP 2022). The rules for rewording are not from the paper.

    A problem is created for each number that the equation uses once, if the rules apply: the question becomes a
    statement, the clause with the number becomes the question at the end, and the equation is solved for the number.
    The new equation must have the same number of operators and evaluate to the new answer. Pronouns are not changed,
    so some texts are unidiomatic.

    Returns:
        `list[MathWordProblem]`: New problems, in the order of the numbers in the equation. The list is empty if no
        rule applies or the equation does not evaluate to the answer.

    Example:

    ```python
    >>> problem = MathWordProblem("食堂运来105千克萝卜，运来的青菜是萝卜的3倍，运来青菜多少千克？", "x=105*3", "315")
    >>> for new in reverse_operations(problem):
    ...     print(new.text, new.equation)
    运来的青菜是萝卜的3倍，运来青菜315千克，食堂运来多少千克萝卜？ x=315/3
    食堂运来105千克萝卜，运来青菜315千克，运来的青菜是萝卜的多少倍？ x=315/105
    ```
    """
    if not problem.agrees() or problem.expression.is_leaf:
        return []
    value = Fraction(problem.answer_value)
    if not 0 < value <= MAX_ANSWER or value.denominator > MAX_DENOMINATOR:
        return []
    answer_in_text, reword = _REWORDINGS[problem.language]
    answer = answer_in_text(value, problem.answer, problem.text)
    values = Counter(problem.values)
    constants = problem.constants
    if answer is None or problem.answer_value in values or problem.answer_value in constants:
        return []
    reversed_problems = []
    for slot, expression in solve_for_slots(problem.expression, Expression(answer)):
        mention = problem.masked.mentions[slot]
        if values[mention.value] > 1 or mention.value in constants:
            continue
        text = reword(problem.text, mention, answer)
        if text is None:
            continue
        equation = f"x={expression.bind(problem.numbers).to_infix()}"
        fields = {"text": text, "equation": equation, "answer": mention.literal}
        new = replace(problem, **fields, id=f"{problem.id}-N{slot}", context="", kind="")
        if _is_sound(new, problem):
            reversed_problems.append(new)
    return reversed_problems


def _is_sound(new: MathWordProblem, old: MathWordProblem) -> bool:
    """Return whether a reversed problem has as many numbers and operators as the original, and a correct equation."""
    if not new.agrees() or len(new.numbers) != len(old.numbers):
        return False
    if new.expression.num_operators != old.expression.num_operators:
        return False
    return _num_slots(new) == _num_slots(old)


def _num_slots(problem: MathWordProblem) -> int:
    return sum(leaf.is_slot for leaf in problem.expression.leaves())
