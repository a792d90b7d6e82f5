"""
A file of problems that teach a solver to read the question, made of Math23k and UnbiasedMWP:

    python examples/question_data.py FOLDER --data_dir DATA

`FOLDER/train.jsonl` has Math23k's training problems, every second one with distractors, and those of UnbiasedMWP three
times: as they are, with distractors, and reversed; of those that ask for a number of the text, every second one.
`FOLDER/validation.jsonl` is Math23k's validation split. Then:

    hf-mwp train --dataset FOLDER ...
"""

import argparse
import json
from pathlib import Path

from hf_mwp.data import load_mwp_dataset, problem_from_row
from hf_mwp.problems import add_distractors, reverse_operations


HELD_OUT = ["unbiasedmwp", "cm17k", "hmwp", "ape_clean:test", "ape210k:test"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, help="Where the two files go.")
    parser.add_argument("--data_dir", required=True, help="Folder of the data sets.")
    parser.add_argument("--seed", type=int, default=0, help="Of the distractors, and which problems get them.")
    args = parser.parse_args()
    data = load_mwp_dataset("math23k", args.data_dir, extra_train=["unbiasedmwp"], extra_exclude=HELD_OUT)
    problems = [problem_from_row(row) for row in data["train"]]
    distracted = add_distractors(problems, args.seed)
    chosen = []
    for index, (row, problem, new) in enumerate(zip(data["train"], problems, distracted, strict=True)):
        second = (index + args.seed) % 2 == 1
        if row["dataset"] == "math23k":
            chosen.append(new if second and new is not None else problem)
        elif second or not problem.expression.is_leaf:
            chosen += [problem, *([] if new is None else [new]), *reverse_operations(problem)]
    args.folder.mkdir(parents=True, exist_ok=True)
    for split, kept in (("train", chosen), ("validation", map(problem_from_row, data["validation"]))):
        with open(args.folder / f"{split}.jsonl", "w", encoding="utf-8") as file:
            for each in kept:
                record = {"id": each.id, "text": each.text, "equation": each.equation, "answer": each.answer}
                print(json.dumps(record, ensure_ascii=False), file=file)
    print(f"{len(chosen):,} training problems in {args.folder}")


if __name__ == "__main__":
    main()
