"""
Create problems for fitting the re-ranker of an English student, most of which it was not trained on:

    python examples/reranker_data.py fit.jsonl
    hf-mwp rerank --model model_cards/mwp-student-3L-gts-english --dataset fit.jsonl --num_samples 8000 \\
        --mc_dropout_fraction 0.3 --output_dir rerank

A solver is surer of its training problems than of new ones, also with dropout. The file has the held-out problems of
GSM8K (those of `examples/compact_english.yaml`) and `gsm8k_steps`, copies of them with irrelevant numbers (three
each) and irrelevant properties (two each), reversed problems, comparisons of counts, and a sample of the training
problems.
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
    write_problems,
)
from hf_mwp.solver.data import load_mwp_dataset, problem_from_row


NUM_TRAINING = 1200
"""Number of training problems in the sample."""


def held_out_copies(problems: list[MathWordProblem]) -> list[MathWordProblem]:
    """Return the copies of held-out problems: with irrelevant numbers and properties, reversed, and comparisons."""
    augmented = []
    for seed in (97, 98, 99):
        augmented.extend(add_distractors(problems, seed))
    for seed in (98, 99):
        augmented.extend(add_properties(problems, seed))
    for problem in problems:
        augmented.extend(reverse_operations(problem))
    for comparisons in compare_counts(problems, 2, 99):
        augmented.extend(comparisons)
    return [problem for problem in augmented if problem is not None]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", type=Path, help="File for the problems, such as fit.jsonl.")
    parser.add_argument("--data_dir", help="Folder of the datasets; examples/data by default.")
    parser.add_argument("--asdiv", action="store_true", help="For the student trained on ASDiv-A.")
    args = parser.parse_args()
    extra_train = ["mawps:train", "gsm8k_steps:train"]
    extra_exclude = ["asdiv_a:all", "mawps:test"]
    if args.asdiv:
        extra_train = ["asdiv_a:train", *extra_train]
        extra_exclude = ["asdiv_a:test", "mawps:test"]
    data = load_mwp_dataset(
        "gsm8k",
        args.data_dir,
        extra_train=extra_train,
        extra_exclude=extra_exclude,
        validation_fraction=0.04,
        drop_overlap="train",
        augment_distractors=True,
        augment_comparisons=True,
    )
    steps = load_mwp_dataset("gsm8k_steps", args.data_dir)
    held_out = [problem_from_row(row) for row in chain(data["validation"], steps["validation"])]
    train_size = len(data["train"])
    indices = random.Random(0).sample(range(train_size), min(NUM_TRAINING, train_size))
    sample = [problem_from_row(row) for row in data["train"].select(indices)]
    fitted = held_out + held_out_copies(held_out) + sample
    write_problems(args.file, fitted)
    print(f"{len(fitted):,} problems in {args.file}, {len(held_out):,} of them held out, besides their copies")


if __name__ == "__main__":
    try:
        main()
    except (OSError, ValueError) as error:
        sys.exit(f"reranker_data.py: {error}")
