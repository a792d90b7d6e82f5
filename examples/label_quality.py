"""
Print how many pseudo-labels mean what the annotated equations of the same problems mean:

    python examples/label_quality.py runs/label/labelled.jsonl math23k:validation --data_dir DATA

A label has the right value by construction. It is right if its value equals that of the annotated equation also for
other numbers in the text: `4*2+6` for `6+2*4`, but not `4+4` for `4*2` with the numbers 4 and 2.
"""

import argparse
import math
import random
import sys
from collections import Counter
from fractions import Fraction

from hf_mwp.commands.terminal.console import make_console, make_table
from hf_mwp.runtime.expressions import Expression, ExpressionError
from hf_mwp.runtime.problems import MathWordProblem, ProblemError
from hf_mwp.solver.data import problem_from_row
from hf_mwp.solver.data.sources import read_part
from hf_mwp.solver.metrics import equations_match


NUM_DRAWS = 8
KINDS = {
    "same": "the annotated equation, except for the order of terms",
    "equivalent": "another equation with the same value for all numbers",
    "by chance": "the same value only for the numbers of this text",
    "not judged": "the annotated equation is missing or cannot be parsed",
}


def mean_the_same(first: Expression, second: Expression, num_numbers: int) -> bool:
    """Return whether two trees with number slots have the same value for random numbers."""
    rng = random.Random(0)
    num_compared = 0
    for _ in range(NUM_DRAWS):
        numbers = [Fraction(rng.randint(2, 99)) for _ in range(num_numbers)]
        try:
            first_value = first.evaluate(numbers)
            second_value = second.evaluate(numbers)
        except ExpressionError:
            # Division by zero, or a power that is too large.
            continue
        if not math.isclose(first_value, second_value, rel_tol=1e-9):
            return False
        num_compared += 1
    return num_compared > 0


def judge(problem: MathWordProblem, equation: str) -> str:
    """Return the kind of a label, a key of `KINDS`."""
    label = problem.with_equation(equation).expression
    try:
        annotation = problem.expression
    except (ExpressionError, ProblemError):
        return "not judged"
    if equations_match(label, annotation, canonical=True):
        return "same"
    if mean_the_same(label, annotation, len(problem.numbers)):
        return "equivalent"
    return "by chance"


def count_kinds(labels: str, source: str, data_dir: str | None) -> Counter[str]:
    """Return the number of labels of each kind. Raises `ValueError` for a label whose text the source lacks."""
    problems = {row["text"]: problem_from_row(row) for row in read_part(source, data_dir)[0]}
    counts = Counter(dict.fromkeys(KINDS, 0))
    for row in read_part(labels)[0]:
        if row["text"] not in problems:
            raise ValueError(f"{source} has no problem with the text of {labels}, line {row['line']}.")
        counts[judge(problems[row["text"]], row["equation"])] += 1
    return counts


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("labels", help="File labelled.jsonl of `hf-mwp pseudo-label`.")
    parser.add_argument("source", help="File or dataset with the annotated equations, such as math23k:validation.")
    parser.add_argument("--data_dir", help="Folder of the datasets; examples/data by default.")
    args = parser.parse_args()
    counts = count_kinds(args.labels, args.source, args.data_dir)
    num_judged = sum(counts.values()) - counts["not judged"]
    rows = []
    for name, meaning in KINDS.items():
        share = ""
        if name != "not judged":
            share = f"{100 * counts[name] / max(num_judged, 1):.1f}"
        rows.append([name, str(counts[name]), share, meaning])
    console = make_console()
    console.print(make_table("Pseudo-labels", ["", "labels", "%", "meaning"], rows, right=["labels", "%"]))
    console.print(f"Right: {counts['same'] + counts['equivalent']} of {num_judged}")


if __name__ == "__main__":
    try:
        main()
    except (OSError, ValueError) as error:
        sys.exit(f"label_quality.py: {error}")
