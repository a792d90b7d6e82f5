"""
Collect further English training problems, without those related to a held-out problem:

    python examples/english_data.py FOLDER --new_data NEW
    hf-mwp train --dataset gsm8k --extra_train mawps:train gsm8k_steps:train FOLDER/train.jsonl ...

`NEW` is a folder with the files of `SOURCES`: JSON lines with the fields `id`, `original_text`, `equation`, `ans` and,
for variants of one problem, `ctx`. If a variant differs from a held-out problem only in its numbers, all variants are
left out. Held out are ASDiv-A, the test problems of GSM8K, and fold 0 of MAWPS. The file also has generated problems
about prices (`hf_mwp.runtime.problems.write_prices`); `generated_problems.py` writes others.
"""

import argparse
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from hf_mwp.runtime.problems import MathWordProblem, write_prices, write_problems
from hf_mwp.solver.data import load_mwp_dataset, problem_from_row
from hf_mwp.solver.data.file_contents import read_records


SOURCES = {
    "math23k_en_train": "Math23k's training problems, translated (github.com/rsk25/PCMG)",
    "problemathic": "problems without and with irrelevant quantities (github.com/him1411/problemathic)",
    "multimwp_simple": "easy problems (github.com/OmegaGamage/multiMWP)",
    "mathqa_dev_test": "MathQA's formulas as equations (github.com/shaigue/mathqa)",
    "mathwell": "problems by language models, checked by teachers (github.com/bryanchrist/MATHWELL)",
}
"""Files without a non-commercial licence, and the repositories from which they were made."""
RESEARCH_SOURCES = {
    "paramawps": "variants of MAWPS (github.com/Starscream-11813/Variational-Mathematical-Reasoning)",
}
"""Files with a non-commercial licence."""
HELD_OUT = ("asdiv_a", "mawps", "gsm8k")


def held_out_keys(data_dir: str | None) -> set[str]:
    """Return the masked texts of the held-out problems."""
    keys = set()
    for name in HELD_OUT:
        splits = load_mwp_dataset(name, data_dir)
        rows = list(splits["test"])
        if name == "asdiv_a":
            # All five folds are test problems.
            rows += list(splits["train"])
        for row in rows:
            keys.add(problem_from_row(row).masked_key)
    return keys


def problems_of(file: Path) -> Iterator[tuple[str, MathWordProblem]]:
    """Yield the context (or id) and the problem of each row of a file."""
    for record in read_records(file):
        row = record.fields
        problem = MathWordProblem(row["original_text"], row["equation"], row["ans"], id=row["id"], language="en")
        yield row.get("ctx", row["id"]), problem


def select_problems(file: Path, keys: set[str]) -> list[MathWordProblem]:
    """Return the problems of a file whose contexts have no held-out problem."""
    problems = list(problems_of(file))
    excluded = {context for context, problem in problems if problem.masked_key in keys}
    return [problem for context, problem in problems if context not in excluded]


def repeat_irrelevant(problems: list[MathWordProblem], copies: int) -> list[MathWordProblem]:
    """Return the problems, with `copies` of each problem of PROBLEMATHIC that has irrelevant quantities."""
    repeated = []
    for problem in problems:
        repeated.append(problem)
        if problem.id.endswith("-distractor"):
            for number in range(2, copies + 1):
                repeated.append(replace(problem, id=f"{problem.id}-{number}"))
    return repeated


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, help="Folder for `train.jsonl`.")
    parser.add_argument("--new_data", required=True, type=Path, help="Folder of the files of `SOURCES`.")
    parser.add_argument("--data_dir", help="Folder of the held-out datasets; examples/data by default.")
    parser.add_argument("--research", action="store_true", help="Add files under a non-commercial licence.")
    parser.add_argument(
        "--irrelevant_copies",
        type=int,
        default=1,
        help="How often each problem of PROBLEMATHIC with irrelevant quantities is in the file.",
    )
    parser.add_argument("--prices", type=int, default=3000, help="Number of generated problems about prices.")
    args = parser.parse_args()
    keys = held_out_keys(args.data_dir)
    names = list(SOURCES)
    if args.research:
        names.extend(RESEARCH_SOURCES)
    selected = list(write_prices(args.prices))
    for name in names:
        problems = select_problems(args.new_data / f"{name}.jsonl.gz", keys)
        problems = repeat_irrelevant(problems, args.irrelevant_copies)
        print(f"{name}: {len(problems):,} problems")
        selected += problems
    args.folder.mkdir(parents=True, exist_ok=True)
    write_problems(args.folder / "train.jsonl", selected)
    print(f"{len(selected):,} training problems in {args.folder}")


if __name__ == "__main__":
    try:
        main()
    except (OSError, ValueError) as error:
        sys.exit(f"english_data.py: {error}")
