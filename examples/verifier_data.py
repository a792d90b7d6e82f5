"""
Create problems for training the verifier of an English solver (`hf-mwp train-verifier`):

    python examples/english_data.py en_new --new_data NEW
    python examples/verifier_data.py problems.jsonl --problems en_new/train.jsonl
    hf-mwp train-verifier --model model_cards/mwp-student-3L-gts-english --dataset problems.jsonl --output_dir verifier

The file has the training problems of GSM8K, `gsm8k_steps`, MAWPS (fold 0) and `--problems`, each either unchanged or
with irrelevant numbers or properties that the solver was not trained on, some comparisons of counts, and some reversed
problems. Problems of ASDiv-A and of the test folds are left out.
"""

import argparse
import random
import sys
from itertools import chain
from pathlib import Path

from hf_mwp.runtime.problems import (
    MathWordProblem,
    add_distractors,
    add_properties,
    compare_counts,
    reverse_operations,
)
from hf_mwp.solver.data import load_mwp_dataset, problem_from_row
from hf_mwp.utils.files import write_json_lines


SEED = 1234
"""Seed of the variants, different from those of the solver's training."""

VARIANT_WEIGHT = 0.6
"""How often a variant is chosen, as a multiple of the unchanged problem."""

NUM_COMPARISONS = 3000
NUM_REVERSED = 5000


def with_variants(problems: list[MathWordProblem]) -> list[MathWordProblem]:
    """Return each problem, unchanged or with irrelevant numbers or properties, and further variants, shuffled."""
    rng = random.Random(SEED)
    chosen = []
    variants = zip(add_distractors(problems, SEED), add_properties(problems, SEED), strict=True)
    for problem, versions in zip(problems, variants, strict=True):
        choices = [problem]
        choices += [version for version in versions if version is not None]
        weights = [1.0] + [VARIANT_WEIGHT] * (len(choices) - 1)
        chosen += rng.choices(choices, weights)
    comparisons = list(chain.from_iterable(compare_counts(problems, 2, SEED)))
    rng.shuffle(comparisons)
    reversed_problems = list(chain.from_iterable(map(reverse_operations, problems)))
    rng.shuffle(reversed_problems)
    chosen += comparisons[:NUM_COMPARISONS] + reversed_problems[:NUM_REVERSED]
    rng.shuffle(chosen)
    return chosen


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", type=Path, help="File for the problems, such as problems.jsonl.")
    parser.add_argument("--problems", nargs="*", default=[], help="Files with more training problems.")
    parser.add_argument("--data_dir", help="Folder of the datasets; examples/data by default.")
    args = parser.parse_args()
    data = load_mwp_dataset(
        "gsm8k",
        args.data_dir,
        extra_train=["mawps:train", "gsm8k_steps:train", *args.problems],
        extra_exclude=["asdiv_a:all", "mawps:test"],
        validation_fraction=0.04,
        drop_overlap="train",
    )
    problems = [problem_from_row(row) for row in data["train"]]
    fields = ("id", "text", "equation", "answer")
    rows = []
    for problem in with_variants(problems):
        rows.append({name: getattr(problem, name) for name in fields})
    write_json_lines(args.file, rows)


if __name__ == "__main__":
    try:
        main()
    except (OSError, ValueError) as error:
        sys.exit(f"verifier_data.py: {error}")
