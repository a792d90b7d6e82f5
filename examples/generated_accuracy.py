"""
Print how many generated problems solvers answer rightly: divisions with a remainder such as "How many boats are
needed?", times between clock times, and kinds of problems in textbooks:

    python examples/generated_accuracy.py model_cards/mwp-student-3L-gts-math23k model_cards/mwp-student-3L-gts-english

Solvers that were trained with `examples/generated_problems.py` know these texts, but for the names and numbers.
"""

import argparse
import sys
from pathlib import Path

from hf_mwp.commands.terminal.console import make_console, make_table
from hf_mwp.runtime import RuntimeSolver, load_solver
from hf_mwp.runtime.problems import MathWordProblem, write_clock_times, write_remainders, write_stories
from hf_mwp.solver.metrics.matching import answers_match


SEED = 7
WRITERS = {"remainders": write_remainders, "clock times": write_clock_times, "stories": write_stories}


def select_problems(name: str, num_written: int, language: str) -> list[MathWordProblem]:
    """Return generated problems. Those with a remainder are left out where the quotient is whole."""
    problems = list(WRITERS[name](num_written, SEED, language))
    if name == "remainders":
        problems = [problem for problem in problems if problem.equation_value.denominator != 1]
    return problems


def count_right(solver: RuntimeSolver, problems: list[MathWordProblem]) -> int:
    """Return the number of problems that are solved with the default search of the solver."""
    num_right = 0
    for problem in problems:
        answer = solver(problem.text)[0]["answer"]
        num_right += answer is not None and answers_match(answer, problem.answer)
    return num_right


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="+", help="Folders of solvers.")
    parser.add_argument("--count", type=int, default=150, help="Number of generated problems of each sort.")
    args = parser.parse_args()
    rows = []
    for model in args.models:
        solver = load_solver(model)
        row = [Path(model).name]
        for name in WRITERS:
            problems = select_problems(name, args.count, solver.reader.language)
            row.append(f"{count_right(solver, problems)} of {len(problems)}")
        rows.append(row)
    headings = list(WRITERS)
    make_console().print(make_table("Generated problems, right", ["", *headings], rows, right=headings))


if __name__ == "__main__":
    try:
        main()
    except (OSError, ValueError) as error:
        sys.exit(f"generated_accuracy.py: {error}")
