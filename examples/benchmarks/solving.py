"""What a problem costs: greedy search, five beams, and twenty with re-ranking, one at a time and in batches.

All of them solve the same test problems of Math23k with the published solver in the same run; rounds take turns, so
that what else the machine does falls on all alike. Figures are CPU seconds of the process, of problem text to answer,
with the share of re-ranking measured apart.

    python examples/benchmarks/solving.py [--problems 128] [--rounds 3] [--batch-sizes 1 32] [--write]
"""

import argparse
from collections.abc import Sequence
from pathlib import Path

import torch
from measuring import Clock, table, write_section
from transformers import pipeline

from hf_mwp import load_mwp_dataset
from hf_mwp.solving.plausibility import PlausibilityReranker


ROOT = Path(__file__).parents[2]
SOLVER = ROOT / "model_cards" / "mwp-student-3L-gts-math23k"
WAYS = {
    "greedy": {"num_beams": 1},
    "5 beams": {"num_beams": 5},
    "20 beams": {"num_beams": 20},
    "20 beams, re-ranked": {"rerank": True},
}
BASE = "5 beams"


def parse_arguments(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Problems a CPU second: greedy, beams, re-ranking.")
    parser.add_argument("--model", default=str(SOLVER), help="solver with a plausibility.json beside it")
    parser.add_argument("--problems", type=int, default=128, help="test problems of Math23k")
    parser.add_argument("--rounds", type=int, default=3, help="times that each way solves all of them")
    parser.add_argument("--batch-sizes", type=int, nargs="+", default=[1, 32])
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--write", action="store_true", help="put the table into RESULTS.md")
    return parser.parse_args(arguments)


class TimedReranker(PlausibilityReranker):
    """Takes the time that re-ranking alone needs."""

    clock = Clock()

    def rerank(self, problem, trees):
        with self.clock:
            return super().rerank(problem, trees)


def measure(solver, reranker, texts: Sequence[str], batch_sizes: Sequence[int], rounds: int) -> dict:
    """CPU seconds of a problem by way and batch size, the best round of each, and those of re-ranking alone."""
    seconds: dict[tuple[str, int], float] = {}
    ways = {name: options | ({"rerank": reranker} if "rerank" in options else {}) for name, options in WAYS.items()}
    for options in ways.values():
        solver(list(texts[:2]), batch_size=2, **options)
    ranking = TimedReranker.clock = Clock()
    for _ in range(rounds):
        for size in batch_sizes:
            for name, options in ways.items():
                lap = Clock()
                with lap:
                    solver(list(texts), batch_size=size, **options)
                spent = lap.cpu / len(texts)
                seconds[name, size] = min(spent, seconds.get((name, size), spent))
    return {"seconds": seconds, "reranking": ranking.cpu / max(1, ranking.laps), "problems": len(texts)}


def report(figures: dict, batch_sizes: Sequence[int]) -> str:
    """A table of milliseconds and problems a CPU second, with the ratio to five beams."""
    rows = []
    for size in batch_sizes:
        base = figures["seconds"][BASE, size]
        for name in WAYS:
            spent = figures["seconds"][name, size]
            rows.append([f"{name}, batch {size}", f"{1e3 * spent:.1f}", f"{1 / spent:.0f}", f"{spent / base:.2f}"])
    head = ["", "ms a problem", "problems a CPU second", "times 5 beams"]
    return (
        f"{figures['problems']} test problems of Math23k, one thread; CPU time of the best round.\n\n"
        f"{table(head, rows)}\n\nOf re-ranking itself: {1e3 * figures['reranking']:.1f} ms a problem."
    )


def main() -> None:
    args = parse_arguments()
    torch.set_num_threads(args.threads)
    rows = load_mwp_dataset("math23k")["test"].select(range(args.problems))
    solver = pipeline("math-word-problem", model=args.model, device="cpu")
    reranker = TimedReranker.from_pretrained(args.model)
    text = report(measure(solver, reranker, rows["text"], args.batch_sizes, args.rounds), args.batch_sizes)
    print(text)
    if args.write:
        write_section("Solving: greedy, beams, re-ranking", text)


if __name__ == "__main__":
    main()
