"""Train a verifier, which reads a text with each answer of a solver, for `hf-mwp rerank --verifier`."""

from __future__ import annotations

import copy
import random
from dataclasses import dataclass
from pathlib import Path

from hf_mwp.utils.checks import check_at_least_one, check_positive
from hf_mwp.utils.main_process import check_one_process
from hf_mwp.utils.option import option, option_values
from hf_mwp.utils.run_folder import RunFolder

from .options.search_options import SearchOptions, find_device
from .tasks.data_options import DataArguments
from .tasks.reporter import SILENT, Reporter
from .terminal.console import CommandConsole


@dataclass
class VerifierArguments(SearchOptions):
    """Options of `hf-mwp train-verifier`, except the data options."""

    output_dir: str | None = option(None, "Folder for verifier.safetensors.", required=True)
    split: str = option("train", "Dataset split for training.", choices=["train", "validation"])
    num_beams: int = option(20, "Number of beams.")
    max_steps: int = option(4000, "Number of training steps.")
    learning_rate: float = option(1e-3, "Maximum learning rate, with a cosine schedule.")
    seed: int = option(0, "Seed for the choice of problems, the initial weights and the order of the problems.")

    def __post_init__(self):
        super().__post_init__()
        check_at_least_one(self, "max_steps")
        check_positive(self, "learning_rate")


OPTIONS = (VerifierArguments, DataArguments)
EXAMPLES = (
    "hf-mwp train-verifier --model runs/student --dataset asdiv_a --fold 0 --max_steps 500 --output_dir runs/verifier",
)


def run(console: CommandConsole, *options) -> None:
    path = train_verifier(*options, reporter=console)
    console.print(f"Verifier: {path}")


def train_verifier(args: VerifierArguments, data_args: DataArguments, reporter: Reporter = SILENT) -> Path:
    """Train a verifier on the beams of a solver ([`fit_verifier`]) and save it: `hf-mwp train-verifier`. An
    interrupted run resumes. Returns the file of the verifier."""
    from hf_mwp.solver.training.fit_verifier import fit_verifier

    from .tasks.loaded_data import print_data_report
    from .tasks.math_word_problems import MathWordProblems

    check_one_process("train-verifier", launches=False)
    device = find_device(args.device)
    with RunFolder(args.output_dir, "train-verifier", option_values(args, data_args)) as folder:
        folder.check_record()
        num_samples = data_args.max_train_samples
        data_args = copy.copy(data_args)
        data_args.max_train_samples = None
        task = MathWordProblems(data_args)
        print_data_report(task, reporter)
        model, processor = task.load_model(args.model, args.split)
        rows = list(task.rows(args.split))
        random.Random(args.seed).shuffle(rows)
        folder.begin()
        verifier = fit_verifier(
            model.to(device),
            processor,
            rows[:num_samples],
            folder.path,
            num_beams=args.num_beams,
            score_margin=args.score_margin,
            batch_size=args.batch_size,
            max_steps=args.max_steps,
            learning_rate=args.learning_rate,
            seed=args.seed,
            progress=reporter.progress("Solving"),
        )
        folder.write_json("data.json", task.data_record())
        folder.finish({"model": args.model, "dataset": task.name, "problems": len(rows[:num_samples])})
    return verifier.file
