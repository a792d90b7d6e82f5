"""Speed and memory of the batched tree decoder, with MWPToolkit's `MWPBert` measured in the same run.

Both solve Math23k problems with the same 3 x 312 encoder, the same weights and the same batches; the script checks
that scores and equations agree before it measures. Each number of threads runs in a new process.

    python examples/benchmarks/gts.py [--threads 1 2] [--steps 10] [--problems 256] [--quick] [--write]
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from measuring import show_report, table


HERE = Path(__file__).parent
ROOT = HERE.parents[1]


def parse_arguments(argv: list[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Batched GTS decoder against MWPToolkit's, on Math23k.")
    parser.add_argument("--data-dir", help="folder of Math23k, if not the one in examples/data")
    parser.add_argument("--cache-dir", default=str(ROOT / ".bench"), help="where the peer and the weights are kept")
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2], help="numbers of threads to measure with")
    parser.add_argument("--batch-size", type=int, default=64)
    parser.add_argument("--steps", type=int, default=10, help="training steps to measure, ours and the peer's in turn")
    parser.add_argument("--problems", type=int, default=256, help="held-out problems to solve")
    parser.add_argument("--fit-steps", type=int, default=200, help="steps that make the weights, once, then kept")
    parser.add_argument("--max-problems", type=int, help="problems of each split to read, all if not given")
    parser.add_argument("--quick", action="store_true", help="small batches and one step: only to see it run")
    parser.add_argument("--write", action="store_true", help="put the tables into RESULTS.md")
    parser.add_argument("--measure", type=Path, help=argparse.SUPPRESS)
    args = parser.parse_args(argv)
    if args.quick:
        args.threads = [1]
        args.batch_size = 4
        args.steps = 1
        args.problems = 8
        args.fit_steps = 10
        args.max_problems = 100
    return args


def run(args: argparse.Namespace, threads: int) -> dict:
    """Measure in a new process, so that thread pools and memory of one run do not affect the next."""
    with tempfile.TemporaryDirectory() as folder:
        result = Path(folder) / "result.json"
        command = [sys.executable, __file__, "--measure", str(result), "--threads", str(threads)]
        for name in ["data_dir", "cache_dir", "batch_size", "steps", "problems", "fit_steps", "max_problems"]:
            if getattr(args, name) is not None:
                command += ["--" + name.replace("_", "-"), str(getattr(args, name))]
        environment = {**os.environ, "OMP_NUM_THREADS": str(threads), "MKL_NUM_THREADS": str(threads)}
        # Waiting threads should sleep: spinning counts as CPU time, and is slow on shared cores.
        environment.update({"OMP_WAIT_POLICY": "PASSIVE", "PYTHONPATH": str(ROOT)})
        environment["HF_DATASETS_DISABLE_PROGRESS_BARS"] = "1"
        subprocess.run(command, check=True, env=environment)
        return json.loads(result.read_text(encoding="utf-8"))


def speed_table(figures: dict) -> str:
    """Return the table of problems per second, ours and the peer's, with their ratio."""
    rows = []
    for label, name, peer_name in [
        ("training step, same batches and optimizer", "train", "peer_train"),
        ("training step, the peer as it trains", "train", "peer_own_train"),
        ("greedy", "greedy", "peer_greedy"),
        ("greedy, batch 1", "greedy_1", "peer_greedy"),
        ("beam 5", "beam", "peer_beam"),
        ("the encoder alone, batches against single problems", "encoder", "encoder_1"),
    ]:
        row = [label]
        for clock in ("cpu", "wall"):
            speed = figures[name]["problems"] / figures[name][clock]
            peer_speed = figures[peer_name]["problems"] / figures[peer_name][clock]
            row += [f"{speed:.1f}", f"{peer_speed:.1f}", f"{speed / peer_speed:.1f}"]
        rows.append(row)
    head = ["problems per ...", "CPU s", "peer", "ratio", "second", "peer", "ratio"]
    return table(head, rows)


def share_table(figures: dict) -> str:
    """Return the table of the decoder's costs beside the encoder's, in CPU seconds and operator calls."""
    cost = {}
    for name, figure in figures.items():
        if isinstance(figure, dict) and "cpu" in figure:
            cost[name] = figure["cpu"] / figure["problems"]
    size = figures["batch_size"]
    rows = [["decoder's share of a training step", f"{cost['decoder_step'] / cost['train']:.1%}"]]
    for label, search, encoder in [
        (f"greedy, batch {size}, as a multiple of the encoder alone", "greedy", "encoder"),
        (f"beam 5, batch {size}, the same", "beam", "encoder"),
        ("greedy, batch 1, the same", "greedy_1", "encoder_1"),
    ]:
        rows.append([label, f"{cost[search] / cost[encoder]:.2f}"])
    for label, search in [("greedy", "greedy"), ("beam 5", "beam")]:
        decoder_cost = cost[search] - cost["encoder"]
        peer_cost = cost[f"peer_{search}"] - cost["encoder_1"]
        rows.append([f"{label}, decoder alone, times faster than the peer's", f"{peer_cost / decoder_cost:.1f}"])
    rows += [
        ["padding, share of all tokens of an epoch", f"{figures['padding']:.1%}"],
        ["the same in random order", f"{figures['padding_shuffled']:.1%}"],
        [f"operator calls of a training step of {size}", f"{figures['calls']:,}"],
        ["the same, peer", f"{figures['peer_calls']:,}"],
        ["forward and backward on a GPU, median of the batches", f"{statistics.median(figures['gpu_calls']):,.0f}"],
    ]
    return table(["", "measured"], rows)


def report(results: dict[int, dict]) -> str:
    """Return all measurements as Markdown."""
    paragraphs = []
    for threads, figures in results.items():
        plural = "s" if threads > 1 else ""
        paragraphs += [f"### {threads} thread{plural}", speed_table(figures), share_table(figures)]
    figures = next(iter(results.values()))
    checks = figures["checks"]
    paragraphs += [
        "### Same results",
        f"Both have the same weights. The maximum difference of a score is, in {checks['nodes']} "
        f"teacher-forced nodes, {checks['logits']:.1e}. Of {checks['problems']} held-out problems "
        "both have the same equation for "
        f"{checks['greedy']} (greedy) and {checks['beam']} (beam 5); mean length {checks['length']:.1f} symbols.",
        "### Memory of a training step",
        "Maximum number of bytes in tensors created in forward and backward, with 40 tokens and 4 numbers per "
        "problem.",
        table(["problems", "nodes of each", "MiB", "MiB added by one problem"], figures["memory_batch"]),
        table(["nodes of each", "problems", "MiB", "MiB added by one node in each"], figures["memory_nodes"]),
    ]
    if "gpu" in figures:
        paragraphs += ["### GPU", table(["", "hf_mwp"], figures["gpu"])]
    return "\n\n".join(paragraphs)


def main() -> None:
    args = parse_arguments()
    if args.measure:
        from measure_gts import measure

        args.measure.write_text(json.dumps(measure(args)), encoding="utf-8")
        return
    results = {threads: run(args, threads) for threads in args.threads}
    show_report("Tree decoder", report(results), args.write)


if __name__ == "__main__":
    main()
