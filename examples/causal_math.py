"""
Distils causal language models of math word problems, with and without hidden states: a Llama-shaped teacher learns
problems and their equations, students of half and quarter width learn from it. Perplexity on held-out texts and the
accuracy of generated equations are written as a table (JSON, Markdown and a picture).

    python examples/causal_math.py --budget quick
    python examples/causal_math.py --budget cpu --new_data FOLDER --output_dir runs/causal_math

`FOLDER` has Math23k in English (`math23k_en_train.jsonl.gz`); without it, the study has no such problems. Completed
stages are skipped, interrupted ones resume, and the results have all students that are completed.
"""

import argparse
import sys
from pathlib import Path

from causal_study.budgets import BUDGETS
from causal_study.students import STUDENT_ARMS
from causal_study.study import TOP_K_ARM, CausalStudy
from hf_mwp.commands.terminal.console import quiet_libraries
from reproduce.markdown import to_markdown


PROGRAM = "causal_math.py"


def main(argv: list[str] | None = None) -> int:
    """Run the stages that are not completed; the results are written after each model."""
    args = parser().parse_args(argv)
    quiet_libraries()
    study = CausalStudy(args.budget, args.output_dir, args.data_dir, args.new_data)
    study.prepare_data()
    print(f"{len(study.train_rows):,} training texts, {len(study.test_rows):,} held-out texts", flush=True)
    study.train_teacher()
    study.evaluate(study.teacher_job)
    study.write_results(args.seeds)
    for seed in args.seeds:
        for arm in STUDENT_ARMS:
            print(f"{arm.title}, seed {seed}", flush=True)
            study.train_student(arm, seed)
            study.evaluate(study.student_job(arm, seed))
            if arm == TOP_K_ARM and seed == args.seeds[0]:
                study.compare_top_k(seed)
            study.write_results(args.seeds)
    for table in study.results(args.seeds):
        print(to_markdown(table))
    return 0


def parser() -> argparse.ArgumentParser:
    """Return the parser of the options."""
    parser = argparse.ArgumentParser(
        prog=PROGRAM, description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--budget", choices=list(BUDGETS), default="quick", help="size of the study")
    parser.add_argument("--output_dir", type=Path, default=Path("runs/causal_math"), help="folder of the stages")
    parser.add_argument("--seeds", nargs="+", type=int, default=[42, 1, 2], help="seeds of the students")
    parser.add_argument("--data_dir", help="folder of MAWPS and GSM8K; examples/data by default")
    parser.add_argument("--new_data", help="folder of Math23k in English")
    return parser


if __name__ == "__main__":
    try:
        sys.exit(main())
    except (OSError, ValueError) as error:
        sys.exit(f"{PROGRAM}: {error}")
    except KeyboardInterrupt:
        sys.exit(130)
