"""Cost of solving a problem: greedy search, 5 beams, and 20 beams with re-ranking, one at a time and in batches, for
the published solver and for a solver with an encoder of a teacher's size.

All solve the same Math23k test problems in one run; rounds alternate, so that other load on the machine affects all
alike. Figures are CPU seconds from problem text to answer; re-ranking is also measured alone. The large encoder is
a BERT-base with random weights; its hidden states are replaced by the published encoder's, so that both searches
are the same. The wider decoder of a real teacher is not counted. A second table has the cost of the longest text that
is solved, full of numbers, beside that of a text of 41 tokens and of one that fills the model's length.

    python examples/benchmarks/solving.py [--problems 64] [--rounds 2] [--batch-sizes 1 32] [--quick] [--write]
"""

import argparse
import copy
import resource
from collections.abc import Sequence
from pathlib import Path

import torch
from measuring import Clock, restart_with_threads, show_report, table
from torch import nn
from transformers import pipeline

from hf_mwp import MwpStudentConfig, MwpStudentModel, load_mwp_dataset
from hf_mwp.runtime.plausibility import PlausibilityReranker
from hf_mwp.runtime.problems.math_word_problem import MAX_TEXT_LENGTH


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
# Four tokens with a number each, and lengths in tokens or characters of the texts that are made of them.
CLAUSE = "有5个，"
LIMIT_BATCH = 16
LIMIT_WAYS = ("greedy", "8 beams, re-ranked")
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
    """Encoder that runs at the given sizes but returns the hidden states of a different encoder."""

    def __init__(self, encoder, sizes: dict[str, int]) -> None:
        super().__init__()
        positions = encoder.config.max_position_embeddings
        config = MwpStudentConfig(vocab_size=encoder.config.vocab_size, max_position_embeddings=positions, **sizes)
        self.small = encoder
        self.large = MwpStudentModel(config, add_pooling_layer=False).eval()
        self.states_by_batch = {}
        self.learns = True

    def forward(self, input_ids, **inputs):
        batch = (input_ids.shape, input_ids.numpy().tobytes())
        if self.learns:
            self.states_by_batch[batch] = self.small(input_ids=input_ids, **inputs)
        else:
            self.large(input_ids=input_ids, **inputs)
        return self.states_by_batch[batch]


def with_large_encoder(solver, calls: Sequence[Sequence[str]], batch_sizes: Sequence[int], sizes: dict[str, int]):
    """Return a pipeline with the results of `solver` and the encoding cost of the given sizes. It can only be called
    with one of the lists of texts in `calls`, which the pipeline divides into batches by length."""
    large = copy.copy(solver)
    large.model = copy.deepcopy(solver.model)
    large.model.encoder = LargeEncoder(large.model.encoder, sizes)
    for texts in calls:
        for size in batch_sizes:
            large(list(texts), batch_size=size)
    large.model.encoder.learns = False
    return large


class TimedReranker(PlausibilityReranker):
    """Re-ranker that measures its own time."""

    clock = Clock()

    def rerank(self, problem, trees):
        with self.clock:
            return super().rerank(problem, trees)


def measure(solver, reranker, texts: Sequence[str], batch_sizes: Sequence[int], rounds: int, large=LARGE) -> dict:
    """Measure CPU seconds per problem by search, batch size and encoder (the fastest round), and of re-ranking."""
    seconds: dict[tuple[str, int, str], float] = {}
    ways = {}
    for name, options in WAYS.items():
        ways[name] = dict(options)
        if "rerank" in options:
            ways[name]["rerank"] = reranker
    for options in ways.values():
        solver(list(texts[:2]), batch_size=2, **options)
    solvers = {"own": solver, "large": with_large_encoder(solver, [texts], batch_sizes, large)}
    ranking = TimedReranker.clock = Clock()
    for _ in range(rounds):
        for size in batch_sizes:
            for name, options in ways.items():
                for encoder, encoder_solver in solvers.items():
                    lap = Clock()
                    with lap:
                        encoder_solver(list(texts), batch_size=size, **options)
                    spent = lap.cpu / len(texts)
                    key = (name, size, encoder)
                    seconds[key] = min(spent, seconds.get(key, spent))
    return {"seconds": seconds, "reranking": ranking.cpu / max(1, ranking.laps), "problems": len(texts)}


def make_texts(max_length: int) -> dict[str, str]:
    """Return texts of 41 tokens, of `max_length` tokens, and of as many characters as are solved."""
    # Two tokens are not words: the first and the last.
    lengths = {"41 tokens": 39, f"{max_length} tokens": max_length - 2}
    lengths[f"{MAX_TEXT_LENGTH:,} characters"] = MAX_TEXT_LENGTH
    texts = {}
    for name, length in lengths.items():
        num_clauses = length // len(CLAUSE) + 1
        texts[name] = (CLAUSE * num_clauses)[:length]
    return texts


def measure_lengths(solver, ways: dict[str, dict], batch_size: int = LIMIT_BATCH) -> dict[str, list[float]]:
    """Measure, for each text of [`make_texts`] from short to long, CPU seconds by `ways` of solving it alone and of
    solving a batch of equal texts, a text; and the maximum resident bytes of the process so far."""
    figures: dict[str, list[float]] = {}
    for name, text in make_texts(solver.processor.max_length).items():
        seconds = []
        for options in ways.values():
            for size in (1, batch_size):
                clock = Clock()
                with clock:
                    solver([text] * size, batch_size=size, **options)
                seconds.append(clock.cpu / size)
        figures[name] = [*seconds, 1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss]
    return figures


def report_lengths(figures: dict[str, list[float]], ways: Sequence[str], batch_size: int = LIMIT_BATCH) -> str:
    """Return a table of milliseconds and of the growth of the resident memory after the first text."""
    head = [""]
    for way in ways:
        head += [f"{way}, ms", f"{way}, batch {batch_size}, ms"]
    *_, base = next(iter(figures.values()))
    rows = []
    for name, (*seconds, memory) in figures.items():
        cells = [f"{1e3 * value:.0f}" for value in seconds]
        rows.append([name, *cells, f"{(memory - base) / 2**20:.0f}"])
    return (
        "A text whose every fourth token is a number, from short to the longest that is solved; CPU time of a text, "
        f"and growth of the maximum resident memory.\n\n{table([*head, 'more MiB'], rows)}"
    )


def report(figures: dict, batch_sizes: Sequence[int]) -> str:
    """Return a table of milliseconds and problems per CPU second, relative to 5 beams and to the large encoder."""
    rows = []
    for size in batch_sizes:
        base = figures["seconds"][BASE, size, "own"]
        for name in WAYS:
            small = figures["seconds"][name, size, "own"]
            large = figures["seconds"][name, size, "large"]
            cells = [f"{1e3 * small:.1f}", f"{1 / small:.0f}", f"{small / base:.2f}", f"{1e3 * large:.1f}"]
            rows.append([f"{name}, batch {size}", *cells, f"{large / small:.2f}"])
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
        f"{table(head, rows)}\n\nRe-ranking takes {1e3 * figures['reranking']:.1f} ms per problem."
    )


def main() -> None:
    args = parse_arguments()
    restart_with_threads(args.threads)
    torch.set_num_threads(args.threads)
    num_problems = args.problems
    rounds = args.rounds
    if args.quick:
        num_problems = 4
        rounds = 1
    rows = load_mwp_dataset("math23k")["test"].select(range(num_problems))
    solver = pipeline("math-word-problem", model=args.model, device="cpu")
    reranker = TimedReranker.from_pretrained(args.model)
    figures = measure(solver, reranker, rows["text"], args.batch_sizes, rounds)
    ways = {name: WAYS[name] for name in LIMIT_WAYS}
    lengths = report_lengths(measure_lengths(solver, ways), LIMIT_WAYS)
    text = f"{report(figures, args.batch_sizes)}\n\n{lengths}"
    show_report("Solving: greedy, beams, re-ranking", text, args.write)


if __name__ == "__main__":
    main()
