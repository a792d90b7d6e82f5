"""Time of trained solvers with the same encoder and different decoders, such as those of the table `decoders`.

Test problems are solved one at a time and in batches of 32, greedily and with 5 beams; the encoder alone also reads
them. Solvers and ways alternate in each round.

    python examples/benchmarks/decoders.py FOLDER FOLDER [--dataset mawps] [--problems 96] [--rounds 3] [--quick]
        [--write]
"""

import argparse
from collections import defaultdict
from collections.abc import Sequence

from measuring import Clock, restart_with_threads, show_report, table


# Beams (0: the encoder alone) and problems in a batch, by column.
WAYS = {
    "encoder, batch 1": (0, 1),
    "greedy, batch 1": (1, 1),
    "5 beams, batch 1": (5, 1),
    "encoder, batch 32": (0, 32),
    "greedy, batch 32": (1, 32),
    "5 beams, batch 32": (5, 32),
}


def parse_arguments(argv: Sequence[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Solvers with different decoders.")
    parser.add_argument("folders", nargs="+", help="folders of solvers")
    parser.add_argument("--dataset", default="mawps")
    parser.add_argument("--problems", type=int, default=96)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--quick", action="store_true", help="four problems and one round: only to see it run")
    parser.add_argument("--write", action="store_true", help="put the table into RESULTS.md")
    args = parser.parse_args(argv)
    if args.quick:
        args.problems = 4
        args.rounds = 1
    return args


def measure(args: argparse.Namespace) -> dict[str, dict[str, float]]:
    """Return CPU milliseconds per problem, by solver and way of solving."""
    import torch

    import hf_mwp

    problems = hf_mwp.load_mwp_dataset(args.dataset)["test"].select(range(args.problems)).to_list()

    @torch.no_grad()
    def run(model, processor, beams: int, size: int) -> None:
        for start in range(0, len(problems), size):
            rows = problems[start : start + size]
            if beams:
                hf_mwp.solve_problems(model, processor, rows, num_beams=beams, batch_size=size)
            else:
                batch = processor(processor.problems(rows))
                model.encoder(input_ids=batch["input_ids"], attention_mask=batch["attention_mask"])

    solvers = {}
    for folder in args.folders:
        model, processor = hf_mwp.load_solver(folder)
        name = f"{type(model.decoder).__name__}, {model.decoder.num_parameters() / 1e6:.1f} M parameters"
        solvers[name] = model.eval(), processor
        run(*solvers[name], 1, 32)
    clocks = defaultdict(Clock)
    for _ in range(args.rounds):
        for way, (beams, size) in WAYS.items():
            for name, solver in solvers.items():
                with clocks[name, way]:
                    run(*solver, beams, size)
    scale = 1000 / (args.rounds * args.problems)
    milliseconds = {}
    for name in solvers:
        milliseconds[name] = {way: clocks[name, way].cpu * scale for way in WAYS}
    return milliseconds


def report(figures: dict[str, dict[str, float]], args: argparse.Namespace) -> str:
    """Return the table as Markdown."""
    rows = []
    for name, milliseconds in figures.items():
        cells = [f"{milliseconds[way]:.1f}" for way in WAYS]
        rows.append([name, *cells])
    text = f"{args.problems} test problems of {args.dataset}, CPU milliseconds per problem, {args.threads} thread."
    return "\n\n".join([text, table(["decoder", *WAYS], rows)])


def main() -> None:
    args = parse_arguments()
    restart_with_threads(args.threads)
    show_report("Decoders", report(measure(args), args), args.write)


if __name__ == "__main__":
    main()
