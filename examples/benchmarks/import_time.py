"""Time of `import hf_mwp` compared with the libraries it needs, and start of the runtime, which needs neither.

Each round measures all figures in new interpreters, so that other load on the machine affects all alike; the minimum
over the rounds is reported.

    python examples/benchmarks/import_time.py [--rounds 7] [--quick] [--write]
"""

import argparse
import json
import os
import subprocess
import sys
from pathlib import Path

from measuring import show_report, table


ROOT = Path(__file__).parents[2]
MODEL = "model_cards/mwp-student-3L-gts-math23k"

REGISTRATION = """
import json, sys, time
sys.path.insert(0, ".")
times = [time.process_time()]
import transformers, torch
times.append(time.process_time())
from transformers import AutoConfig, AutoModel, PreTrainedModel
times.append(time.process_time())
import hf_mwp
times.append(time.process_time())
print(json.dumps([after - before for before, after in zip(times, times[1:])]))
"""

RUNTIME = f"""
import json, sys, time
sys.path.insert(0, ".")
start = time.process_time()
from hf_mwp.runtime import load_solver
imported = time.process_time()
load_solver("{MODEL}")("小明有4个苹果和2个梨，一共有多少个水果？")
answered = time.process_time()
assert not {{"torch", "transformers"}} & set(sys.modules)
resident_kib = next(int(line.split()[1]) for line in open("/proc/self/status") if line.startswith("VmHWM"))
print(json.dumps([imported - start, answered - start, resident_kib / 1024]))
"""

STEPS = [
    "`import transformers, torch`",
    "`from transformers import AutoConfig, AutoModel, PreTrainedModel`, what a registered model is derived from",
    "`import hf_mwp` after these",
]
RUNTIME_STEPS = [
    "`from hf_mwp.runtime import load_solver`, CPU seconds",
    "the import, loading a student and the first answer, CPU seconds",
    "maximum resident memory, MiB",
]


def smallest(code: str, rounds: int) -> list[float]:
    """Run code in new interpreters on one thread, and return the minimum of each number in the list that it prints."""
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    measured = []
    for _ in range(rounds):
        command = [sys.executable, "-c", code]
        result = subprocess.run(command, capture_output=True, text=True, check=True, cwd=ROOT, env=environment)
        measured.append(json.loads(result.stdout))
    return [min(column) for column in zip(*measured, strict=True)]


def main() -> None:
    parser = argparse.ArgumentParser(description="Time of `import hf_mwp` and start of the runtime, in CPU seconds.")
    parser.add_argument("--rounds", type=int, default=7, help="fresh interpreters to start")
    parser.add_argument("--quick", action="store_true", help="two rounds, half a minute")
    parser.add_argument("--write", action="store_true", help="put the tables into RESULTS.md")
    args = parser.parse_args()
    rounds = 2 if args.quick else args.rounds
    rows = [[step, f"{seconds:.2f}"] for step, seconds in zip(STEPS, smallest(REGISTRATION, rounds), strict=True)]
    registration = table(["step", "CPU seconds"], rows)
    import_seconds, answer_seconds, resident_mib = smallest(RUNTIME, rounds)
    figures = [f"{import_seconds:.2f}", f"{answer_seconds:.2f}", f"{resident_mib:.0f}"]
    runtime = table(["the runtime, where PyTorch is installed", ""], list(zip(RUNTIME_STEPS, figures, strict=True)))
    show_report("Import time", f"Smallest of {rounds} rounds.\n\n{registration}\n\n{runtime}", args.write)


if __name__ == "__main__":
    main()
