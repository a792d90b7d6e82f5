"""Cost of a training step of a teacher: all weights or low-rank adapters (LoRA), in fp32 and bf16.

Problems of Math23k, encoders of BERT's shape with random weights, which do not change the time. Each way trains on
the same batches, in alternating rounds, so that other load on the machine affects all alike. Figures are CPU
seconds of a step with the optimiser, from the fastest round; bf16 is only faster on processors with bf16
instructions.

    python examples/benchmarks/fine_tuning.py [--shapes 6x384 12x768] [--rank 8] [--rounds 2] [--quick] [--write]
"""

import argparse
import random
import tempfile
from collections.abc import Sequence
from itertools import product

from distillation import SEED, VOCABULARY, WARM_UP, new_solver, settle, trainer_options
from measuring import Clock, restart_with_threads, show_report, table


def parse_arguments(argv: Sequence[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="A teacher's training step: all weights or LoRA, fp32 or bf16.")
    parser.add_argument("--data-dir", help="folder of Math23k, if not the one in examples/data")
    parser.add_argument(
        "--shapes", nargs="+", default=["6x384", "12x384", "12x768"], help="layers and widths of the encoders"
    )
    parser.add_argument("--rank", type=int, default=8, help="rank of the adapters")
    parser.add_argument("--batch-size", type=int, default=32)
    parser.add_argument("--steps", type=int, default=6, help=f"steps of each round, after {WARM_UP} that do not count")
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--quick", action="store_true", help="a tiny encoder and one step: only to see it run")
    parser.add_argument("--write", action="store_true", help="put the table into RESULTS.md")
    args = parser.parse_args(argv)
    if args.quick:
        args.shapes = ["2x24"]
        args.batch_size = 2
        args.steps = 1
        args.rounds = 1
    return args


def step_watch(clock: Clock):
    """Return a trainer callback that measures the time of steps after warm-up."""
    from transformers import TrainerCallback

    class Watch(TrainerCallback):
        def on_step_begin(self, args, state, control, **kwargs):
            if state.global_step >= WARM_UP:
                clock.__enter__()

        def on_step_end(self, args, state, control, **kwargs):
            if state.global_step > WARM_UP:
                clock.__exit__()

    return Watch()


def measure(args: argparse.Namespace) -> dict:
    """Measure, by shape and way (`"all weights"`, `"LoRA"`), trained parameters and seconds per step by precision."""
    from hf_mwp import MwpProcessor, MwpStudentConfig, add_lora, load_mwp_dataset
    from hf_mwp.solver.data import problem_from_row

    settle(args.threads)
    train = load_mwp_dataset("math23k", data_dir=args.data_dir)["train"]
    num_rows = (WARM_UP + args.steps) * args.batch_size
    indices = random.Random(SEED).sample(range(len(train)), num_rows)
    rows = train.select(indices).to_list()
    processor = MwpProcessor.build(VOCABULARY, map(problem_from_row, rows), min_constant_count=1, indexed_numbers=True)
    figures: dict = {}
    for shape in args.shapes:
        layers, width = map(int, shape.split("x"))
        sizes = {"num_hidden_layers": layers, "hidden_size": width, "intermediate_size": 4 * width}
        config = MwpStudentConfig(**sizes, num_attention_heads=12)
        ways = figures[shape] = {way: {"seconds": {}} for way in ("all weights", "LoRA")}
        for _, way, precision in product(range(args.rounds), ways, ("fp32", "bf16")):
            model = new_solver(processor, config)
            measured = ways[way]
            if way == "LoRA":
                add_lora(model, args.rank, tokens=processor.number_token_ids)
            measured["trained"] = sum(weight.numel() for weight in model.parameters() if weight.requires_grad)
            spent = step_seconds(model, processor, rows, args.batch_size, bf16=precision == "bf16")
            measured["seconds"][precision] = min(spent, measured["seconds"].get(precision, spent))
    return figures


def step_seconds(model, processor, rows: list[dict], batch_size: int, bf16: bool) -> float:
    """Return CPU seconds per step of an epoch, after warm-up."""
    from hf_mwp import SolverTrainer, SolverTrainingConfig

    clock = Clock()
    with tempfile.TemporaryDirectory() as folder:
        trainer = SolverTrainer(
            model=model,
            args=SolverTrainingConfig(**trainer_options(folder, batch_size), num_train_epochs=1, bf16=bf16),
            train_dataset=rows,
            processing_class=processor,
            callbacks=[step_watch(clock)],
        )
        trainer.train()
    return clock.cpu / clock.laps


def report(figures: dict, args: argparse.Namespace) -> str:
    """Return a table with a row for each shape and way."""
    rows = []
    for shape, ways in figures.items():
        base = ways["all weights"]["seconds"]
        for way, measured in ways.items():
            name = f"LoRA, rank {args.rank}" if way == "LoRA" else way
            fp32 = measured["seconds"]["fp32"]
            bf16 = measured["seconds"]["bf16"]
            cells = [f"{measured['trained'] / 1e6:.1f}", f"{fp32:.2f}", f"{fp32 / base['fp32']:.2f}"]
            cells += [f"{bf16:.2f}", f"{bf16 / base['bf16']:.2f}", f"{fp32 / bf16:.2f}"]
            rows.append([f"{shape}, {name}", *cells])
    head = ["", "M trained", "fp32, s", "times all weights", "bf16, s", "times all weights", "bf16, times faster"]
    return (
        f"CPU seconds per step of {args.batch_size} Math23k problems: mean of {args.steps} steps, fastest of "
        f"{args.rounds} rounds.\n\n{table(head, rows)}"
    )


def main() -> None:
    args = parse_arguments()
    restart_with_threads(args.threads)
    show_report("A teacher's training step", report(measure(args), args), args.write)


if __name__ == "__main__":
    main()
