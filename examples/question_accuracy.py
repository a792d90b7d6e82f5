"""
Print how well solvers read the question, the numbers and the units, in % of the problems that they solve greedily:

    python examples/question_accuracy.py model_cards/mwp-student-3L-gts-math23k --data_dir DATA
    python examples/question_accuracy.py model_cards/mwp-student-3L-gts-english

The Chinese problems are those of the validation splits of Math23k and UnbiasedMWP in `DATA`, no test problems. The
English problems are those of the validation splits of GSM8K and `gsm8k_steps`, and those of ASDiv-A, on which
`mwp-student-3L-gts-english` was not trained. Math23k's and ASDiv-A's are also changed by the package's augmentations:
irrelevant numbers, quantities or questions in other units, and numbers in other forms.
"""

import argparse
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import hf_mwp
from hf_mwp.commands.terminal.console import make_console, make_table
from hf_mwp.runtime.problems import (
    MathWordProblem,
    add_distractors,
    add_properties,
    convert_units,
    reverse_operations,
    rewrite_numbers,
    write_prices,
)
from hf_mwp.solver.data import load_mwp_dataset, problem_from_row


Sets = dict[str, list[MathWordProblem]]
"""Problems by the name of their kind."""


def chinese_sets(data_dir: str | None) -> Sets:
    """Return the Chinese development problems."""
    math23k = problems_of("math23k", data_dir)
    unbiased = problems_of("unbiasedmwp", data_dir)
    with_operation = [problem for problem in unbiased if not problem.expression.is_leaf]
    reversed_problems = []
    for problem in math23k:
        reversed_problems.extend(reverse_operations(problem)[:1])
    return {
        "Math23k": math23k,
        "reversed": reversed_problems,
        **augmented_sets(math23k),
        "UnbiasedMWP, with an operation": with_operation,
        "one operation": [problem for problem in with_operation if problem.expression.num_operators == 1],
        "answer in the text": [problem for problem in unbiased if problem.expression.is_leaf],
    }


def english_sets(data_dir: str | None) -> Sets:
    """Return the English development problems."""
    asdiv = problems_of("asdiv_a", data_dir, splits=("train", "test"))
    return {
        "GSM8K": problems_of("gsm8k", data_dir, validation_fraction=0.04),
        "gsm8k_steps": problems_of("gsm8k_steps", data_dir),
        "ASDiv-A": asdiv,
        **augmented_sets(asdiv),
        "irrelevant properties": [problem for problem in add_properties(asdiv, 7) if problem is not None],
        "prices": list(write_prices(300, seed=99)),
    }


def augmented_sets(problems: list[MathWordProblem]) -> Sets:
    """Return variants of the problems."""
    variants = {
        "irrelevant numbers": add_distractors(problems, 7),
        "other units": convert_units(problems, 7),
        "other forms of numbers": rewrite_numbers(problems, 7),
    }
    sets = {}
    for title, augmented in variants.items():
        sets[title] = [problem for problem in augmented if problem is not None]
    return sets


def problems_of(
    name: str, data_dir: str | None, splits: Sequence[str] = ("validation",), **options
) -> list[MathWordProblem]:
    """Return the problems of those splits that a dataset has."""
    data = load_mwp_dataset(name, data_dir, **options)
    problems = []
    for split in splits:
        if split in data:
            problems.extend(map(problem_from_row, data[split]))
    return problems


SETS = {"zh": chinese_sets, "en": english_sets}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="+", help="Folders or Hub ids of solvers.")
    parser.add_argument("--data_dir", help="Folder of the datasets; examples/data by default.")
    args = parser.parse_args()
    solvers = [hf_mwp.load_solver(name) for name in args.models]
    languages = {processor.language for _, processor in solvers}
    if len(languages) > 1:
        raise ValueError("the solvers have different languages. Pass those of one language.")
    sets = SETS[languages.pop()](args.data_dir)
    # A problem may be in two sets.
    distinct = {}
    rows = {}
    for title, problems in sets.items():
        rows[title] = [title, str(len(problems))]
        for problem in problems:
            distinct[id(problem)] = problem
    for model, processor in solvers:
        # The reading of the solver, not that of the augmentation.
        read_problems = [replace(problem, number_reading=processor.number_reading) for problem in distinct.values()]
        predictions = dict(zip(distinct, hf_mwp.solve_problems(model, processor, read_problems), strict=True))
        for title, problems in sets.items():
            num_correct = sum(predictions[id(problem)].score.reason == "correct" for problem in problems)
            rows[title].append(f"{100 * num_correct / max(len(problems), 1):.1f}")
    headings = ["problems", *(Path(name).name for name in args.models)]
    make_console().print(make_table("Correct answers, %, greedy", ["", *headings], rows.values(), right=headings))


if __name__ == "__main__":
    try:
        main()
    except (OSError, ValueError) as error:
        sys.exit(f"question_accuracy.py: {error}")
