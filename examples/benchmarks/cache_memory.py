"""Memory of a distillation with cached teacher outputs, by dataset size.

For each size, a new process draws problems of 40 to 60 characters from Math23k with replacement (an added character
makes them different), builds the cache of a 3 x 384 teacher with random weights, and runs training steps. The
maximum resident memory at the end of a step is reported, separately for memory mapped from files.

    python examples/benchmarks/cache_memory.py [--problems 1000 4000 16000] [--steps 40] [--quick] [--write]
"""

import argparse
import json
import os
import random
import subprocess
import sys
import tempfile
from pathlib import Path

from distillation import SEED, VOCABULARY, Watch, new_solver, settle, trainer_options
from measuring import Clock, show_report, table


ROOT = Path(__file__).parents[2]
TEACHER = {"num_hidden_layers": 3, "hidden_size": 384, "intermediate_size": 1536, "num_attention_heads": 12}
BATCH_SIZE = 32
LENGTHS = range(40, 61)  # in characters: the longest batch, which needs the most memory, is the same for all sizes
FIRST_CHARACTER = 0x4E00


def measure(problems: int, steps: int, student_fields: dict | None = None, teacher_fields: dict = TEACHER) -> dict:
    """Return the bytes for one size: `anonymous` and `mapped` memory, and the `cache`."""
    import hf_mwp
    from hf_mwp.solver.data import problem_from_row

    settle(threads=1)
    train = hf_mwp.load_mwp_dataset("math23k")["train"].filter(lambda row: len(row["text"]) in LENGTHS)
    indices = random.Random(SEED).choices(range(len(train)), k=problems)
    rows = train.select(indices)
    # An added character, not a digit, makes repeated problems different for the cache.
    rows = rows.map(lambda row, index: {"text": row["text"] + chr(FIRST_CHARACTER + index)}, with_indices=True)
    first_problems = map(problem_from_row, train.select(range(1000)))
    processor = hf_mwp.MwpProcessor.build(VOCABULARY, first_problems, min_constant_count=1, indexed_numbers=True)
    config = hf_mwp.MwpStudentConfig(**(student_fields or {}))
    with tempfile.TemporaryDirectory() as folder:
        trainer = hf_mwp.DistillationTrainer(
            model=new_solver(processor, config),
            teacher_model=new_solver(processor, hf_mwp.MwpStudentConfig(**teacher_fields)),
            args=hf_mwp.SolverDistillationConfig(
                **trainer_options(folder, BATCH_SIZE), max_steps=steps, cache_teacher_outputs=True
            ),
            train_dataset=rows,
            processing_class=processor,
        )
        watch = Watch(Clock())
        trainer.add_callback(watch)
        trainer.train()
        cache = trainer.teacher_source.cache.nbytes
    return {"anonymous": watch.anonymous, "mapped": watch.mapped, "cache": cache}


def report(figures: dict[int, dict], steps: int) -> str:
    """Everything measured, as Markdown."""
    rows = []
    for problems, nbytes in figures.items():
        mebibytes = [f"{nbytes[name] / 2**20:.0f}" for name in ("cache", "anonymous", "mapped")]
        rows.append([f"{problems:,}", *mebibytes])
    text = (
        f"Maximum at the end of {steps} steps with {BATCH_SIZE} problems of 40 to 60 characters. Each size runs in a "
        "new process, which also builds the cache. Mapped memory has libraries and the parts of the "
        "cache that were read; the system frees it when memory is short."
    )
    return f"{text}\n\n{table(['problems', 'cache MiB', 'resident MiB', 'mapped MiB'], rows)}"


def main() -> None:
    parser = argparse.ArgumentParser(description="Memory of a distillation with cached outputs, by size of data.")
    parser.add_argument("--problems", type=int, nargs="+", default=[1000, 4000, 16000], help="sizes of data")
    parser.add_argument("--steps", type=int, default=40, help="steps of training")
    parser.add_argument("--quick", action="store_true", help="64 problems and two steps: only to see it run")
    parser.add_argument("--write", action="store_true", help="put the table into RESULTS.md")
    parser.add_argument("--json", action="store_true", help="print the figures of one size as JSON")
    args = parser.parse_args()
    if args.quick:
        args.problems = [64]
        args.steps = 2
    sys.path.insert(0, str(ROOT))
    if args.json:
        print(json.dumps(measure(args.problems[0], args.steps)))
        return
    figures = {}
    for problems in args.problems:
        command = [sys.executable, __file__, "--json", "--problems", str(problems), "--steps", str(args.steps)]
        environment = {**os.environ, "OMP_NUM_THREADS": "1", "OMP_WAIT_POLICY": "PASSIVE"}
        result = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True, env=environment)
        figures[problems] = json.loads(result.stdout.splitlines()[-1])
    show_report("Memory of distillation with a cache", report(figures, args.steps), args.write)


if __name__ == "__main__":
    main()
