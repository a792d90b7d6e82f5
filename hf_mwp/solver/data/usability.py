"""Faults that exclude a problem from training or evaluation."""

import re
from collections.abc import Mapping
from typing import Any

from hf_mwp.runtime.expressions import ExpressionError
from hf_mwp.runtime.problems import MathWordProblem, ProblemError
from hf_mwp.runtime.problems.linear_equations import solve_equation
from hf_mwp.runtime.problems.worked_steps import STEP_FAULTS


REASONS = {
    "no_context": "the question has no context",
    "no_equation": "there is no equation",
    "system_of_equations": "there is a system of equations",
    "several_unknowns": "the equation has more than one unknown",
    "unsolved_equation": "the equation is not solved for its unknown",
    "unreadable_equation": "the equation cannot be parsed",
    "not_computable": "the equation has no value",
    "wrong_value": "the value of the equation is not the answer",
    "several_answers": "there is more than one answer",
    "no_answer": "there is no answer that can be parsed",
    "no_numbers": "there is no number in the text",
} | STEP_FAULTS
"""Faults of a problem in the order of the checks, then faults of the steps of a worked answer."""

_UNKNOWN = re.compile(r"[^\W\d]\w*")
_SLOT = re.compile(r"N\d+")
_REMAINDER = re.compile(r"=\s*\d+\s*r\s*\d+\s*$")


def find_fault(problem: MathWordProblem) -> tuple[str, str] | None:
    """Return the fault that excludes a problem from training (key of `REASONS` and message with details), or `None`. A
    problem without an answer is accepted if its equation has a value."""
    if not (problem.equation or "").strip():
        return "no_equation", REASONS["no_equation"]
    try:
        problem.expression  # noqa: B018
    except (ExpressionError, ProblemError) as error:
        return _equation_fault(problem.equation), f"{problem.equation}: {error}"
    try:
        value = problem.equation_value
    except ExpressionError as error:
        return "not_computable", f"{problem.equation}: {error}"
    if problem.answer is not None:
        fault = find_answer_fault(problem)
        if fault is not None:
            return fault
        if not problem.agrees():
            return "wrong_value", f"{problem.equation} is {float(value):.10g}, the answer is {problem.answer}"
    if not problem.numbers:
        return "no_numbers", REASONS["no_numbers"]
    return None


def find_answer_fault(problem: MathWordProblem) -> tuple[str, str] | None:
    """Return the fault that excludes a problem from evaluation, in the form of [`find_fault`]. Predictions are
    compared with a single value: the answer or, if there is no answer, the value of the equation."""
    if problem.answer is None:
        try:
            problem.equation_value  # noqa: B018
        except (ExpressionError, ProblemError):
            return "no_answer", "neither an answer nor an equation with a value"
        return None
    if ";" in problem.answer:
        return "several_answers", f"answers {problem.answer}"
    if problem.answer_value is None:
        return "no_answer", f"answer {problem.answer!r}"
    return None


def with_solved_equation(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return a row whose equation is solved for its unknown ([`~problems.linear_equations.solve_equation`]), if it was
    not and can be."""
    equation = row["equation"]
    if not equation or _equation_fault(equation) != "unsolved_equation":
        return dict(row)
    try:
        solution = solve_equation(equation)
    except ExpressionError:
        return dict(row)
    return {**row, "equation": f"x={solution.to_infix()}"}


def _equation_fault(equation: str) -> str:
    """Return the key in `REASONS` of an equation that cannot be parsed."""
    if ";" in equation:
        return "system_of_equations"
    words = _UNKNOWN.findall(_REMAINDER.sub("", equation))
    unknowns = {word for word in words if not _SLOT.fullmatch(word)}
    sides = [side.strip() for side in equation.split("=")]
    if len(sides) == 2:
        # The equation is solved for an unknown. Words on the other side are units, or the unknown itself.
        for unknown, other_side in (sides, sides[::-1]):
            if unknown in unknowns:
                is_unsolved = unknown in _UNKNOWN.findall(other_side)
                return "unsolved_equation" if is_unsolved else "unreadable_equation"
    if len(unknowns) > 1:
        return "several_unknowns"
    return "unsolved_equation" if unknowns else "unreadable_equation"
