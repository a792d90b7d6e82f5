"""Time of `import hf_mwp`, compared with the libraries it needs.

Each round measures all figures in a new interpreter, so that other load on the machine affects all alike; the
minimum over the rounds is reported.

    python examples/benchmarks/import_time.py [--rounds 7] [--write]
"""

import argparse
import json
import subprocess
import sys
from pathlib import Path

from measuring import show_report, table


ROUND = """
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

STEPS = [
    "`import transformers, torch`",
    "`from transformers import AutoConfig, AutoModel, PreTrainedModel`, what a registered model is derived from",
    "`import hf_mwp` after these",
]


def main() -> None:
    parser = argparse.ArgumentParser(description="Time of `import hf_mwp`, in CPU seconds.")
    parser.add_argument("--rounds", type=int, default=7, help="fresh interpreters to start")
    parser.add_argument("--write", action="store_true", help="put the table into RESULTS.md")
    args = parser.parse_args()
    root = Path(__file__).parents[2]
    rounds = []
    for _ in range(args.rounds):
        result = subprocess.run([sys.executable, "-c", ROUND], capture_output=True, text=True, check=True, cwd=root)
        rounds.append(json.loads(result.stdout))
    best = [min(column) for column in zip(*rounds, strict=True)]
    rows = [[step, f"{seconds:.2f}"] for step, seconds in zip(STEPS, best, strict=True)]
    body = table(["step", "CPU seconds"], rows)
    show_report("Import time", f"Smallest of {args.rounds} rounds.\n\n{body}", args.write)


if __name__ == "__main__":
    main()
