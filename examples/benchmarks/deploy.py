"""Cost of an answer from a deployed solver: a BERT-base-shaped solver and the published student in PyTorch, the
student in NumPy and ONNX, in single precision and int8, and without 30 % of its heads.

All solve the same Math23k test problems in one run on one thread, one at a time and in batches of 32. Rounds
alternate, so that other load on the machine affects all alike. The BERT-base-shaped solver has random weights: as
in `solving.py`, its hidden states are computed and then replaced by the student's, so that both search the same
trees with the same decoder (the wider decoder of a real teacher is not counted). The startup time is that of
`hf-mwp solve` in a new process, files in the page cache, until the answer is printed. Heads are pruned by the
gradient of their gates on 64 training problems, without further training. A last table has the default search of each
published solver in NumPy, with the margin of scores in its folder and without.

    python examples/benchmarks/deploy.py [--problems 1000] [--timed 96] [--rounds 2] [--starts 3] [--quick] [--write]

With `--answers FILE`, only correct answers are counted, which does not depend on the load of the machine. They are
written as a record, from which the guides take them:

    python examples/benchmarks/deploy.py --answers examples/results/deployed_answers.json
"""

import argparse
import hashlib
import json
import math
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from measuring import restart_with_threads, show_report, table
from solving import LARGE, with_large_encoder
from transformers import pipeline
from transformers.utils.logging import disable_progress_bar

from hf_mwp import MwpCollator, MwpSolver, MwpStudentConfig, MwpStudentModel, load_mwp_dataset, load_solver
from hf_mwp.commands.export import ExportArguments, export_solver
from hf_mwp.compress.pruning import GateGradient, choose_heads, prune_heads
from hf_mwp.runtime import load_solver as load_runtime
from hf_mwp.runtime.default_search import DefaultSearch
from hf_mwp.solver.metrics.matching import answers_match


ROOT = Path(__file__).parents[2]
SOLVER = ROOT / "model_cards" / "mwp-student-3L-gts-math23k-gemma"
DATASETS = {"zh": "math23k", "en": "mawps"}
BERT = "12 x 768, PyTorch"
STUDENT = "student, PyTorch"
BATCH_SIZE = 32
PRUNED = 0.3
SEARCHES = {"greedy": {"num_beams": 1}, "default": {}}
START = """
import json, sys, time
sys.argv[0] = "hf-mwp"
from hf_mwp.commands.main import main
status = main(sys.argv[1:])
memory = next(line.split()[1] for line in open("/proc/self/status") if line.startswith("VmHWM"))
print(json.dumps([status, time.time(), time.process_time(), int(memory) * 1024]))
"""


@dataclass(frozen=True)
class Variant:
    """A deployed solver: its folder and backend."""

    folder: Path
    runtime: str = "numpy"


def parse_arguments(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Latency, start, memory, size and answers of deployed solvers.")
    parser.add_argument("--model", default=str(SOLVER), help="folder of the student")
    parser.add_argument("--problems", type=int, default=1000, help="test problems whose answers are judged")
    parser.add_argument("--timed", type=int, default=96, help="test problems that are timed")
    parser.add_argument("--rounds", type=int, default=2, help="times that each solves the timed ones; the best counts")
    parser.add_argument("--starts", type=int, default=3, help="new processes of each; the quickest counts")
    parser.add_argument("--quick", action="store_true", help="four problems, one round and start: only to see it run")
    parser.add_argument("--write", action="store_true", help="put the tables into RESULTS.md")
    parser.add_argument("--answers", type=Path, metavar="FILE", help="count correct answers only, and write a record")
    args = parser.parse_args(arguments)
    if args.quick:
        args.problems = 4
        args.timed = 4
        args.rounds = 1
        args.starts = 1
    return args


def make_variants(model: str, folder: Path, train, sizes: dict[str, int] = LARGE) -> dict[str, Variant]:
    """Write the folders of all solvers; `train` has the rows that heads are scored on."""
    solver, processor = load_solver(model)
    solver.float()
    positions = solver.encoder.config.max_position_embeddings
    vocabulary = solver.encoder.config.vocab_size
    config = MwpStudentConfig(vocab_size=vocabulary, max_position_embeddings=positions, **sizes)
    torch.manual_seed(0)
    large = MwpSolver.from_encoder_decoder_pretrained(MwpStudentModel(config, add_pooling_layer=False), processor)
    batch = MwpCollator(processor)(processor.prepare_dataset(train).to_list())
    scores = GateGradient().scores(solver, [batch])
    pruned = prune_heads(solver, choose_heads(scores, PRUNED))
    for name, saved_solver in (("large", large), ("pruned", pruned.half())):
        saved_solver.save_pretrained(folder / name)
        processor.save_pretrained(folder / name)
        for file in ("plausibility.json", "generation_config.json"):
            if (Path(model) / file).is_file():
                shutil.copyfile(Path(model) / file, folder / name / file)
    variants = {BERT: Variant(folder / "large", "torch"), STUDENT: Variant(Path(model), "torch")}
    cut = f"{PRUNED:.0%} of heads cut"
    for name, source, export_format, quantize in (
        ("student, NumPy fp32", model, "numpy", None),
        ("student, NumPy int8", model, "numpy", "int8"),
        ("student, ONNX fp32", model, "onnx", None),
        ("student, ONNX int8", model, "onnx", "int8"),
        (f"{cut}, PyTorch", folder / "pruned", None, None),
        (f"{cut}, NumPy fp32", folder / "pruned", "numpy", None),
        (f"{cut}, ONNX int8", folder / "pruned", "onnx", "int8"),
    ):
        if export_format is None:
            variants[name] = Variant(Path(source), "torch")
            continue
        target = folder / name.replace(" ", "_").replace("%", "")
        export_solver(ExportArguments(str(source), str(target), format=export_format, quantize=quantize))
        variants[name] = Variant(target)
    return variants


def make_solvers(variants: dict[str, Variant], texts: Sequence[str], sizes: dict[str, int] = LARGE) -> dict:
    """Return, by variant, a function that solves a list of texts in batches of a size."""
    solvers: dict[str, Callable] = {}
    for name, variant in variants.items():
        if name != BERT:
            solvers[name] = make_solver(variant)
    solvers[BERT] = with_large_encoder(solvers[STUDENT], blocks_of(texts), [1, BATCH_SIZE], sizes)
    return {name: solvers[name] for name in variants}


def blocks_of(texts: Sequence[str]) -> list[list[str]]:
    """Return the texts in lists of `BATCH_SIZE`."""
    blocks = []
    for start in range(0, len(texts), BATCH_SIZE):
        blocks.append(list(texts[start : start + BATCH_SIZE]))
    return blocks


def make_solver(variant: Variant) -> Callable:
    """Return a function that solves a list of texts in batches of a size."""
    if variant.runtime == "torch":
        solver = pipeline("math-word-problem", model=str(variant.folder), device="cpu")
        solver.model.float()
        return solver
    runtime = load_runtime(variant.folder)
    # The runtime has no batches: it solves texts one after the other.
    return lambda texts, batch_size, **options: runtime(texts, **options)


def measure_times(solvers: dict, texts: Sequence[str], rounds: int) -> dict:
    """Measure CPU seconds per problem, one at a time and in batches, `(variant, search, batch size) -> (calls,)`."""
    best: dict[tuple[str, str, int], np.ndarray] = {}
    for solve in solvers.values():
        solve(list(texts[:2]), batch_size=1, num_beams=1)
    for _ in range(rounds):
        round_seconds = defaultdict(list)
        for block in blocks_of(texts):
            singles = [[text] for text in block]
            for name, solve in solvers.items():
                for search, options in SEARCHES.items():
                    for size, batches in ((1, singles), (BATCH_SIZE, [block])):
                        for batch in batches:
                            began = time.process_time()
                            solve(batch, batch_size=size, **options)
                            seconds = (time.process_time() - began) / len(batch)
                            round_seconds[name, search, size].append(seconds)
        for key, seconds_by_call in round_seconds.items():
            best[key] = np.minimum(best.get(key, np.inf), seconds_by_call)
    return best


def count_right(solvers: dict, rows) -> dict[tuple[str, str], int]:
    """Count correct answers by variant and search, except for random weights."""
    right = {}
    for name, solve in solvers.items():
        if name == BERT:
            continue
        for search, options in SEARCHES.items():
            solutions = solve(list(rows["text"]), batch_size=1, **options)
            right[name, search] = 0
            for solution, answer in zip(solutions, rows["answer"], strict=True):
                right[name, search] += answers_match(solution["answer"], answer)
    return right


def answers_record(args: argparse.Namespace, sizes: dict[str, int] = LARGE) -> dict:
    """Count correct answers of all variants with weights and return the record of `--answers`."""
    data = load_mwp_dataset("math23k")
    rows = data["test"].select(range(args.problems))
    with tempfile.TemporaryDirectory() as folder:
        variants = make_variants(args.model, Path(folder), data["train"].select(range(64)), sizes)
        del variants[BERT]
        solvers = {name: make_solver(variant) for name, variant in variants.items()}
        right = count_right(solvers, rows)
    counts: dict[str, dict[str, int]] = {}
    for (name, search), count in right.items():
        counts.setdefault(name, {})[search] = count
    return {
        "model": Path(args.model).name,
        "weights": weights_digest(Path(args.model)),
        "problems": args.problems,
        "right": counts,
    }


def weights_digest(folder: Path) -> str:
    """Return the SHA-256 digest of the weights of a solver, by which a record names them."""
    return hashlib.sha256((folder / "model.safetensors").read_bytes()).hexdigest()


def measure_start(variant: Variant, text: str, starts: int) -> tuple[float, float, float]:
    """Measure minimum wall and CPU seconds of `hf-mwp solve` until the first answer, and resident bytes."""
    measured = []
    command = ["solve", text, "--model", str(variant.folder), "--runtime", variant.runtime, "--num_beams", "1"]
    for _ in range(starts):
        began = time.time()
        result = subprocess.run(
            [sys.executable, "-c", START, *command],
            stdout=subprocess.PIPE,
            text=True,
            check=True,
            cwd=ROOT,
            env=os.environ | {"HF_HUB_OFFLINE": "1"},
        )
        status, ended, cpu, memory = json.loads(result.stdout.splitlines()[-1])
        if status:
            raise RuntimeError(f"hf-mwp {' '.join(command)} ended with {status}.")
        measured.append((ended - began, cpu, memory))
    wall_seconds, cpu_seconds, resident_bytes = zip(*measured, strict=True)
    return min(wall_seconds), min(cpu_seconds), min(resident_bytes)


def measure_margins(folders: Sequence[Path], timed: int, rounds: int) -> dict[str, list[np.ndarray]]:
    """Measure CPU seconds per call of the default search of solvers in NumPy, with the margin of scores of the folder
    and without, on test problems of their language: `name -> [(calls,), (calls,)]`."""
    seconds = {}
    for folder in folders:
        solve = load_runtime(folder)
        dataset = load_mwp_dataset(DATASETS[solve.reader.language])["test"]
        texts = dataset.select(range(timed))["text"]
        best = [np.full(timed, np.inf), np.full(timed, np.inf)]
        solve(texts[0])
        for _ in range(rounds):
            for call, text in enumerate(texts):
                for way, options in enumerate(({}, {"score_margin": math.inf})):
                    began = time.process_time()
                    solve(text, **options)
                    best[way][call] = min(best[way][call], time.process_time() - began)
        seconds[folder.name] = best
    return seconds


def report_margins(seconds: dict[str, list[np.ndarray]]) -> str:
    """Return a table of milliseconds with and without the margin, and of their ratio."""
    rows = []
    for name, (within, without) in seconds.items():
        medians = [np.median(within), np.median(without)]
        cells = [f"{1e3 * median:.1f}" for median in medians]
        rows.append([name, *cells, f"{medians[1] / medians[0]:.2f}"])
    head = ["", "margin, p50, ms", "no margin, p50, ms", "times faster"]
    return f"Default search of the published solvers in NumPy at batch 1, CPU time.\n\n{table(head, rows)}"


def folder_size(folder: Path) -> int:
    """Return the size of the files needed to solve, without records, cards and digests of training texts."""
    not_needed = {"training_texts.safetensors", "record.json", "README.md"}
    size = 0
    for path in folder.iterdir():
        if path.is_file() and path.name not in not_needed:
            size += path.stat().st_size
    return size


def latency_cells(seconds: np.ndarray) -> list[str]:
    """Return median and 95 % quantile in milliseconds, and problems per second."""
    return [
        f"{1e3 * np.median(seconds):.1f}",
        f"{1e3 * np.quantile(seconds, 0.95):.1f}",
        f"{1 / seconds.mean():.0f}",
    ]


def report(times: dict, starts: dict, right: dict, sizes: dict, problems: int, timed: int) -> str:
    """Return two tables: latency; startup time, memory, size and accuracy."""
    base = np.median(times[STUDENT, "greedy", 1])
    rows = []
    medians = {}
    for name in starts:
        medians[name] = np.median(times[name, "greedy", 1])
        cells = []
        for search in SEARCHES:
            cells += latency_cells(times[name, search, 1])
        cells += latency_cells(times[name, "greedy", BATCH_SIZE])
        ratio = np.median(times[BERT, "greedy", 1]) / medians[name]
        rows.append([name, *cells, f"{ratio:.1f}"])
    fastest = min(medians.values())
    head = ["", *(["p50, ms", "p95, ms", "a second"] * 3), "times faster than 12 x 768"]
    speed = table(head, rows)
    rows = []
    for name, (wall, cpu, memory) in starts.items():
        cells = [f"{wall:.2f}", f"{cpu:.2f}", f"{memory / 2**20:.0f}", f"{sizes[name] / 1e6:.1f}"]
        for search in SEARCHES:
            cells.append(str(right.get((name, search), "-")))
        rows.append([name, *cells])
    head = ["", "start, s", "start, CPU s", "resident MiB", "on disk, MB", "right, greedy", "right, default search"]
    return (
        f"{timed} test problems of Math23k, one thread, CPU time. Columns in threes: greedy at batch 1; the folder's "
        f"default search (8 beams, re-ranked) at batch 1; greedy in batches of {BATCH_SIZE}, a problem (the runtime "
        "solves them one after the other). The last column compares p50 of greedy search at batch 1; the student in "
        f"PyTorch takes {1e3 * base:.1f} ms, the quickest of all {1e3 * fastest:.1f} ms.\n\n{speed}\n\nFrom the "
        "command line to the first answer, files in the page cache; maximum resident memory; size of the files; "
        f"correct answers of {problems:,} test problems. Heads are pruned without further training.\n\n"
        f"{table(head, rows)}"
    )


def measure(args: argparse.Namespace, sizes: dict[str, int] = LARGE) -> str:
    """Measure everything and return it as Markdown."""
    data = load_mwp_dataset("math23k")
    rows = data["test"].select(range(args.problems))
    texts = list(rows["text"][: args.timed])
    with tempfile.TemporaryDirectory() as folder:
        variants = make_variants(args.model, Path(folder), data["train"].select(range(64)), sizes)
        starts = {name: measure_start(variant, texts[0], args.starts) for name, variant in variants.items()}
        on_disk = {name: folder_size(variant.folder) for name, variant in variants.items()}
        solvers = make_solvers(variants, texts, sizes)
        times = measure_times(solvers, texts, args.rounds)
        right = count_right(solvers, rows)
    folders = sorted(path.parent for path in SOLVER.parent.glob(f"*/{DefaultSearch.file_name}"))
    margins = report_margins(measure_margins(folders, args.timed, args.rounds))
    return f"{report(times, starts, right, on_disk, args.problems, len(texts))}\n\n{margins}"


def main() -> None:
    args = parse_arguments()
    restart_with_threads(1)
    torch.set_num_threads(1)
    disable_progress_bar()
    if args.answers is not None:
        args.answers.write_text(json.dumps(answers_record(args), indent=1) + "\n", encoding="utf-8")
        return
    show_report("Deployed solvers", measure(args), args.write)


if __name__ == "__main__":
    main()
