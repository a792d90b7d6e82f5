"""
Print how many generated problems about divisions with a remainder solvers answer rightly, such as "How many boats are
needed?":

    python examples/remainder_accuracy.py model_cards/mwp-student-3L-gts-math23k model_cards/mwp-student-3L-gts-english
"""

import argparse
import sys
from pathlib import Path

from hf_mwp.commands.terminal.console import make_console, make_table
from hf_mwp.runtime import RuntimeSolver, load_solver
from hf_mwp.runtime.problems import write_remainders
from hf_mwp.solver.metrics.matching import answers_match


SEED = 7


def count_right(solver: RuntimeSolver, num_written: int) -> tuple[int, int]:
    """Return the number of problems whose quotient is not whole, and how many of them are solved with the default
    search of the solver."""
    problems = []
    for problem in write_remainders(num_written, SEED, solver.reader.language):
        if problem.equation_value.denominator != 1:
            problems.append(problem)
    num_right = 0
    for problem in problems:
        answer = solver(problem.text)[0]["answer"]
        num_right += answer is not None and answers_match(answer, problem.answer)
    return len(problems), num_right


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="+", help="Folders of solvers.")
    parser.add_argument("--count", type=int, default=150, help="Number of generated problems, with whole quotients.")
    args = parser.parse_args()
    rows = []
    for name in args.models:
        num_problems, num_right = count_right(load_solver(name), args.count)
        rows.append([Path(name).name, str(num_problems), str(num_right)])
    headings = ["problems", "right"]
    make_console().print(make_table("Divisions with a remainder", ["", *headings], rows, right=headings))


if __name__ == "__main__":
    try:
        main()
    except (OSError, ValueError) as error:
        sys.exit(f"remainder_accuracy.py: {error}")
