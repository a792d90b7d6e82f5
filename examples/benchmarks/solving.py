"""Cost of solving a problem: greedy search, five beams, and twenty with re-ranking, one at a time and in batches, by
the published solver and by one whose encoder has a teacher's size.

All of them solve the same test problems of Math23k in the same run; rounds take turns, so that what else the machine
does falls on all alike. Figures are CPU seconds of the process, of problem text to answer, with the share of
re-ranking measured apart. The large encoder is BERT-base's, of random weights: its states are thrown away for those of
the published one, so that both searches are the same. A teacher's decoder is wider, too, which is not counted.

    python examples/benchmarks/solving.py [--problems 64] [--rounds 2] [--batch-sizes 1 32] [--quick] [--write]
"""

import argparse
import copy
from collections.abc import Sequence
from pathlib import Path

import torch
from measuring import Clock, restart_with_threads, table, write_section
from torch import nn
from transformers import pipeline

from hf_mwp import MwpStudentConfig, MwpStudentModel, load_mwp_dataset
from hf_mwp.plausibility import PlausibilityReranker


ROOT = Path(__file__).parents[2]
SOLVER = ROOT / "model_cards" / "mwp-student-3L-gts-math23k"
WAYS = {
    "greedy": {"num_beams": 1},
    "5 beams": {"num_beams": 5},
    "8 beams, re-ranked": {"num_beams": 8, "rerank": True},
    "20 beams": {"num_beams": 20},
    "20 beams, re-ranked": {"rerank": True},
}
BASE = "5 beams"
LARGE = {"num_hidden_layers": 12, "hidden_size": 768, "num_attention_heads": 12, "intermediate_size": 3072}


def parse_arguments(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Problems a CPU second: greedy, beams, re-ranking.")
    parser.add_argument("--model", default=str(SOLVER), help="solver with a plausibility.json beside it")
    parser.add_argument("--problems", type=int, default=64, help="test problems of Math23k")
    parser.add_argument("--rounds", type=int, default=2, help="times that each way solves all of them")
    parser.add_argument("--batch-sizes", type=int, nargs="+", default=[1, 32])
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--quick", action="store_true", help="four problems and one round: only to see it run")
    parser.add_argument("--write", action="store_true", help="put the table into RESULTS.md")
    return parser.parse_args(arguments)


class LargeEncoder(nn.Module):
    """Costs what an encoder of these sizes does, and gives the states that another one gave for the same batch."""

    def __init__(self, encoder, sizes: dict[str, int]) -> None:
        super().__init__()
        positions = encoder.config.max_position_embeddings
        config = MwpStudentConfig(vocab_size=encoder.config.vocab_size, max_position_embeddings=positions, **sizes)
        self.small, self.large = encoder, MwpStudentModel(config, add_pooling_layer=False).eval()
        self.known, self.learns = {}, True

    def forward(self, input_ids, **inputs):
        batch = (input_ids.shape, input_ids.numpy().tobytes())
        if self.learns:
            self.known[batch] = self.small(input_ids=input_ids, **inputs)
        else:
            self.large(input_ids=input_ids, **inputs)
        return self.known[batch]


def with_large_encoder(solver, texts: Sequence[str], batch_sizes: Sequence[int], sizes: dict[str, int]):
    """A pipeline that solves these texts as another one does, and encodes them at the cost of these sizes."""
    large = copy.copy(solver)
    large.model = copy.deepcopy(solver.model)
    large.model.encoder = LargeEncoder(large.model.encoder, sizes)
    for size in batch_sizes:
        large(list(texts), batch_size=size)
    large.model.encoder.learns = False
    return large


class TimedReranker(PlausibilityReranker):
    """Takes the time that re-ranking alone needs."""

    clock = Clock()

    def rerank(self, problem, trees):
        with self.clock:
            return super().rerank(problem, trees)


def measure(solver, reranker, texts: Sequence[str], batch_sizes: Sequence[int], rounds: int, large=LARGE) -> dict:
    """CPU seconds of a problem by way, batch size and encoder, of each the best round; those of re-ranking alone."""
    seconds: dict[tuple[str, int, str], float] = {}
    ways = {name: options | ({"rerank": reranker} if "rerank" in options else {}) for name, options in WAYS.items()}
    for options in ways.values():
        solver(list(texts[:2]), batch_size=2, **options)
    solvers = {"own": solver, "large": with_large_encoder(solver, texts, batch_sizes, large)}
    ranking = TimedReranker.clock = Clock()
    for _ in range(rounds):
        for size in batch_sizes:
            for name, options in ways.items():
                for encoder, each in solvers.items():
                    lap = Clock()
                    with lap:
                        each(list(texts), batch_size=size, **options)
                    spent, key = lap.cpu / len(texts), (name, size, encoder)
                    seconds[key] = min(spent, seconds.get(key, spent))
    return {"seconds": seconds, "reranking": ranking.cpu / max(1, ranking.laps), "problems": len(texts)}


def report(figures: dict, batch_sizes: Sequence[int]) -> str:
    """A table of milliseconds and problems a CPU second, with the ratios to five beams and to the large encoder."""
    rows = []
    for size in batch_sizes:
        base = figures["seconds"][BASE, size, "own"]
        for name in WAYS:
            own, large = (figures["seconds"][name, size, encoder] for encoder in ("own", "large"))
            cells = [f"{1e3 * own:.1f}", f"{1 / own:.0f}", f"{own / base:.2f}", f"{1e3 * large:.1f}"]
            rows.append([f"{name}, batch {size}", *cells, f"{large / own:.2f}"])
    head = [
        "",
        "ms a problem",
        "problems a CPU second",
        "times 5 beams",
        "encoder of 12 x 768, ms",
        "times the published",
    ]
    return (
        f"{figures['problems']} test problems of Math23k, one thread; CPU time of the best round.\n\n"
        f"{table(head, rows)}\n\nOf re-ranking itself: {1e3 * figures['reranking']:.1f} ms a problem."
    )


def main() -> None:
    args = parse_arguments()
    restart_with_threads(args.threads)
    torch.set_num_threads(args.threads)
    problems, rounds = (4, 1) if args.quick else (args.problems, args.rounds)
    rows = load_mwp_dataset("math23k")["test"].select(range(problems))
    solver = pipeline("math-word-problem", model=args.model, device="cpu")
    reranker = TimedReranker.from_pretrained(args.model)
    text = report(measure(solver, reranker, rows["text"], args.batch_sizes, rounds), args.batch_sizes)
    print(text)
    if args.write:
        write_section("Solving: greedy, beams, re-ranking", text)


if __name__ == "__main__":
    main()
