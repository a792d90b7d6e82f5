"""Time of an epoch of distillation with and without the teacher cache, and of fine-tuning.

Problems of Math23k, the 3 x 312 student, a teacher of 12 layers and width 384 or 768 (BERT-base), in fp32. Teachers
have random weights, which do not change the time, unless `--teacher` is given. All figures are from one process; the
rounds of the three kinds of training alternate.

    python examples/benchmarks/distillation.py [--problems 512] [--rounds 2] [--teacher FOLDER] [--quick] [--write]
"""

import argparse
import random
import tempfile
from pathlib import Path

from measuring import Clock, restart_with_threads, show_report, table


ROOT = Path(__file__).parents[2]
VOCABULARY = ROOT / "examples" / "data" / "vocab"
SEED = 0
WARM_UP = 2  # batches


def teacher_sizes(width: int) -> dict:
    """Return the sizes of a BERT with twelve layers."""
    return {"num_hidden_layers": 12, "hidden_size": width, "intermediate_size": 4 * width, "num_attention_heads": 12}


def parse_arguments(argv: list[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Distillation with and without the teacher cache.")
    parser.add_argument("--data-dir", help="folder of Math23k, if not the one in examples/data")
    parser.add_argument("--teacher", help="folder of a BERT-like encoder; random weights if not given")
    parser.add_argument(
        "--widths", type=int, nargs="+", default=[384, 768], help="widths of teachers without a folder"
    )
    parser.add_argument("--problems", type=int, default=512, help="training problems, drawn by chance")
    parser.add_argument("--rounds", type=int, default=2, help="epochs of each kind")
    parser.add_argument("--batch-size", type=int, default=32)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--quick", action="store_true", help="few problems and a small teacher: only to see it run")
    parser.add_argument("--write", action="store_true", help="put the tables into RESULTS.md")
    args = parser.parse_args(argv)
    if args.quick:
        args.widths = [48]
        args.problems = 48
        args.rounds = 1
        args.batch_size = 8
    return args


def new_solver(processor, config, **settings):
    """Return a solver with random weights."""
    import torch

    from hf_mwp import MwpSolver, MwpStudentModel

    torch.manual_seed(SEED)
    return MwpSolver.from_encoder_decoder_pretrained(
        MwpStudentModel(config, add_pooling_layer=False), processor, **settings
    )


def new_teacher(args: argparse.Namespace, processor, narrow: int | None, config_fields: dict):
    """Return the teacher; `narrow` is the width of bottleneck networks after the compared layers."""
    from transformers import AutoConfig

    from hf_mwp import MwpSolver, MwpStudentConfig

    if not config_fields:
        config = AutoConfig.from_pretrained(args.teacher, trust_remote_code=False)
        config_fields = {"num_hidden_layers": config.num_hidden_layers}
    num_layers = config_fields["num_hidden_layers"]
    settings = {}
    if narrow is not None:
        layers = [num_layers // 3, 2 * num_layers // 3, num_layers]
        settings = {"bottleneck_layers": layers, "bottleneck_size": narrow}
    if args.teacher is None:
        return new_solver(processor, MwpStudentConfig(**config_fields), **settings)
    return MwpSolver.from_encoder_decoder_pretrained(args.teacher, processor, **settings)


class Watch:
    """Trainer callback that measures the time of steps and their memory, mapped files excluded."""

    def __new__(cls, clock: Clock):
        from transformers import TrainerCallback

        class Callback(TrainerCallback):
            anonymous = mapped = 0

            def on_train_begin(self, *args, **kwargs):
                clock.__enter__()

            def on_step_end(self, *args, **kwargs):
                self.anonymous = max(self.anonymous, resident("RssAnon"))
                self.mapped = max(self.mapped, resident("RssFile"))

            def on_train_end(self, *args, **kwargs):
                clock.__exit__()

        return Callback()


def resident(name: str) -> int:
    """Return a memory value of the process in bytes; 0 if the system does not report it."""
    status = Path("/proc/self/status")
    if not status.exists():
        return 0
    for line in status.read_text(encoding="utf-8").splitlines():
        if line.startswith(f"{name}:"):
            kilobytes = int(line.split()[1])
            return kilobytes << 10
    return 0


def settle(threads: int) -> None:
    """Set the number of threads and disable progress bars."""
    import datasets
    import torch
    from transformers.utils import logging

    torch.set_num_threads(threads)
    datasets.disable_progress_bars()
    logging.disable_progress_bar()


def trainer_options(folder: str, batch_size: int) -> dict:
    """Return trainer options without evaluation, logging and saving."""
    return {
        "output_dir": folder,
        "use_cpu": True,
        "report_to": "none",
        "save_strategy": "no",
        "disable_tqdm": True,
        "logging_strategy": "no",
        "per_device_train_batch_size": batch_size,
        "learning_rate": 1e-4,
        "decoder_learning_rate": 1e-3,
    }


def measure(args: argparse.Namespace, student_fields: dict | None = None, sizes=teacher_sizes) -> dict:
    """
    Measure all figures.

    Args:
        args (`argparse.Namespace`): The options.
        student_fields (`dict`, *optional*): Sizes of the student's encoder that differ from the defaults.
        sizes (`Callable`, *optional*): Function from a width to the sizes of a teacher's encoder.
    """
    from hf_mwp import MwpProcessor, MwpStudentConfig, load_mwp_dataset
    from hf_mwp.solver.data import problem_from_row

    settle(args.threads)
    train = load_mwp_dataset("math23k", data_dir=args.data_dir)["train"]
    indices = random.Random(SEED).sample(range(len(train)), args.problems)
    rows = train.select(indices).to_list()
    processor = MwpProcessor.build(VOCABULARY, map(problem_from_row, rows), min_constant_count=1, indexed_numbers=True)
    student_config = MwpStudentConfig(**(student_fields or {}))
    figures = {"problems": args.problems, "batch_size": args.batch_size, "rounds": args.rounds, "tables": {}}
    # Sizes by the teacher's name.
    teachers = {}
    if args.teacher is not None:
        teachers[args.teacher] = {}
    else:
        for width in args.widths:
            fields = sizes(width)
            teachers[f"{fields['num_hidden_layers']} x {width}"] = fields
    targets = {
        f"bottleneck states of width {student_config.hidden_size}": student_config.hidden_size,
        "hidden states through projections": None,
    }
    for name, fields in teachers.items():
        for target, narrow in targets.items():
            teacher = new_teacher(args, processor, narrow, fields)
            measured = measure_teacher(args, processor, rows, student_config, teacher)
            figures["tables"][f"Teacher {name}, {target}"] = measured
    return figures


def measure_teacher(args, processor, rows, student_config, teacher) -> dict:
    """Measure one teacher: seconds of each kind of epoch, of building and opening the cache, and of a teacher pass."""
    import hf_mwp

    figures: dict = {}
    with tempfile.TemporaryDirectory() as folder:
        shared = {**trainer_options(folder, args.batch_size), "num_train_epochs": 1}

        def trainer_of(training: str, rows=rows):
            student = new_solver(processor, student_config)
            keywords = {"model": student, "train_dataset": rows, "processing_class": processor}
            if training == "fine-tuning":
                return hf_mwp.SolverTrainer(args=hf_mwp.SolverTrainingConfig(**shared), **keywords)
            config = hf_mwp.SolverDistillationConfig(**shared, cache_teacher_outputs=training == "cached")
            return hf_mwp.DistillationTrainer(args=config, teacher_model=teacher, **keywords)

        for training in ("fine-tuning", "uncached"):
            trainer_of(training, rows[: WARM_UP * args.batch_size]).train()
        trainer = trainer_of("cached")
        building = Clock()
        with building:
            loader = trainer.get_train_dataloader()
        opening = Clock()
        with opening:
            trainer.get_train_dataloader()
        figures["build"] = building.cpu
        figures["open"] = opening.cpu
        figures["pass"] = teacher_pass(trainer, loader.dataset)
        figures["bytes"] = trainer.teacher_source.cache.nbytes
        figures["rows"] = len(trainer.teacher_source.cache)
        clocks = {training: Clock() for training in ("fine-tuning", "cached", "uncached")}
        memory = dict.fromkeys(clocks, (0, 0))
        for _ in range(args.rounds):
            for training, clock in clocks.items():
                trainer = trainer_of(training)
                watch = Watch(clock)
                trainer.add_callback(watch)
                trainer.train()
                anonymous, mapped = memory[training]
                memory[training] = (max(anonymous, watch.anonymous), max(mapped, watch.mapped))
        figures["epochs"] = {training: clock.cpu / args.rounds for training, clock in clocks.items()}
        figures["memory"] = memory
    return figures


def teacher_pass(trainer, rows) -> float:
    """Measure CPU seconds of one teacher pass over the rows, in the trainer's batches of similar length."""
    import torch

    from hf_mwp.compress.trainers.length_grouped_sampler import LengthGroupedSampler

    size = trainer.args.per_device_eval_batch_size
    lengths = [row["length"] for row in rows]
    order = list(LengthGroupedSampler(lengths, size, SEED))
    collate = trainer._get_collator_with_removed_columns(trainer.data_collator)
    clock = Clock()
    with torch.no_grad(), clock:
        for start in range(0, len(order), size):
            batch = collate([rows[number] for number in order[start : start + size]])
            trainer.teacher_model(**batch, output_hidden_states=True)
    return clock.cpu


def report(figures: dict) -> str:
    """Return all measurements as Markdown."""
    from hf_mwp.compress.distillation.cached_teacher import NUM_CHECKED

    paragraphs = [
        f"{figures['problems']} problems in batches of {figures['batch_size']}, mean of {figures['rounds']} epochs, "
        "CPU seconds from the first step to the last. Opening a cache (checking its files, hashing the teacher and "
        "the rows) is done once per run. Resident memory is the maximum at the end of a step, always with the teacher "
        "loaded; mapped files (libraries and the cache), which the system frees when memory is short, are separate.",
    ]
    for label, measured in figures["tables"].items():
        epochs = measured["epochs"]
        rows = []
        for training, seconds in epochs.items():
            ratio = seconds / epochs["fine-tuning"]
            anonymous, mapped = measured["memory"][training]
            cells = [f"{seconds:.1f}", f"{ratio:.2f}", f"{anonymous / 2**20:.0f}", f"{mapped / 2**20:.0f}"]
            rows.append([training, *cells])
        # Some problems run through the teacher twice, one of them also alone; the sum is estimated.
        fixed = measured["open"] / measured["pass"] + (2 * NUM_CHECKED + 1) / figures["problems"]
        head = ["epoch", "CPU s", "times fine-tuning", "resident MiB", "mapped MiB"]
        figure_rows = [
            ["with the cache, times faster than without", f"{epochs['uncached'] / epochs['cached']:.1f}"],
            ["building the cache, in passes of the teacher", f"{measured['build'] / measured['pass']:.2f}"],
            ["of these the opening and the questions beforehand, which do not grow with the data", f"{fixed:.2f}"],
            ["a pass of the teacher, CPU s", f"{measured['pass']:.1f}"],
            ["opening the cache, CPU s", f"{measured['open']:.1f}"],
            ["size of the cache, KB a problem", f"{measured['bytes'] / measured['rows'] / 1000:.0f}"],
        ]
        paragraphs += [f"### {label}", table(head, rows), table(["", "measured"], figure_rows)]
    return "\n\n".join(paragraphs)


def main() -> None:
    args = parse_arguments()
    restart_with_threads(args.threads)
    show_report("Distillation with a teacher cache", report(measure(args)), args.write)


if __name__ == "__main__":
    main()
