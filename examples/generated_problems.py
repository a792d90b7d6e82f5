"""
Write generated training problems into a file, with exact labels:

    python examples/generated_problems.py generated.jsonl --language zh --remainders 3000 --clock_times 1500
    hf-mwp train --extra_train generated.jsonl --number_reading people ...

Problems that differ only in their numbers count once in a training.
"""

import argparse
import sys
from itertools import chain
from pathlib import Path

from hf_mwp.runtime.problems import write_clock_times, write_problems, write_remainders, write_stories


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", type=Path, help="JSON lines file to write.")
    parser.add_argument("--language", choices=["en", "zh"], default="en", help="Language of the texts.")
    parser.add_argument("--seed", type=int, default=0, help="Seed of all choices.")
    parser.add_argument("--remainders", type=int, default=0, help="Number of divisions with a remainder.")
    parser.add_argument("--clock_times", type=int, default=0, help="Number of problems about clock times.")
    parser.add_argument("--stories", type=int, default=0, help="Number of problems of kinds in textbooks.")
    parser.add_argument("--kinds", help="TOML file with your own kinds for --stories.")
    args = parser.parse_args()
    problems = chain(
        write_remainders(args.remainders, args.seed, args.language, rounded=False),
        write_clock_times(args.clock_times, args.seed, args.language),
        write_stories(args.stories, args.seed, args.language, args.kinds),
    )
    num_problems = write_problems(args.file, problems)
    print(f"{num_problems:,} problems in {args.file}")


if __name__ == "__main__":
    try:
        main()
    except (OSError, ValueError) as error:
        sys.exit(f"generated_problems.py: {error}")
