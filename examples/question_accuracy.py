"""
Print how well Chinese solvers read the question, in % of the problems that they solve greedily:

    python examples/question_accuracy.py model_cards/mwp-student-3L-gts-math23k --data_dir DATA

The problems are those of the validation splits of Math23k and UnbiasedMWP in `DATA`, no test problems: unchanged,
reversed, and with irrelevant numbers (one to five).
"""

import argparse
import sys
from pathlib import Path

import hf_mwp
from hf_mwp.cli.terminal.console import make_console, make_table
from hf_mwp.data import load_mwp_dataset, problem_from_row
from hf_mwp.problems import MathWordProblem, add_distractors, reverse_operations


def development_sets(data_dir: str) -> dict[str, list[MathWordProblem]]:
    """Return the problems by the name of their kind."""
    math23k, unbiased = (
        [problem_from_row(row) for row in load_mwp_dataset(name, data_dir)["validation"]]
        for name in ("math23k", "unbiasedmwp")
    )
    asked = [each for each in unbiased if not each.expression.is_leaf]
    return {
        "Math23k": math23k,
        "reversed": [new for each in math23k for new in reverse_operations(each)[:1]],
        "irrelevant numbers": [each for each in add_distractors(math23k, 7) if each is not None],
        "UnbiasedMWP, with an operation": asked,
        "one operation": [each for each in asked if each.expression.num_operators == 1],
        "answer in the text": [each for each in unbiased if each.expression.is_leaf],
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="+", help="Folders or Hub ids of solvers.")
    parser.add_argument("--data_dir", help="Folder of the datasets; examples/data by default.")
    args = parser.parse_args()
    sets = development_sets(args.data_dir)
    # A problem may be in two sets.
    distinct = {id(each): each for problems in sets.values() for each in problems}
    rows = {kind: [kind, str(len(problems))] for kind, problems in sets.items()}
    for name in args.models:
        model, processor = hf_mwp.load_solver(name)
        found = dict(zip(distinct, hf_mwp.solve_problems(model, processor, distinct.values()), strict=True))
        for kind, problems in sets.items():
            right = sum(found[id(each)].score.reason == "correct" for each in problems)
            rows[kind].append(f"{100 * right / max(len(problems), 1):.1f}")
    headings = ["problems", *(Path(name).name for name in args.models)]
    make_console().print(make_table("Correct answers, %, greedy", ["", *headings], rows.values(), right=headings))


if __name__ == "__main__":
    try:
        main()
    except (OSError, ValueError) as error:
        sys.exit(f"question_accuracy.py: {error}")
