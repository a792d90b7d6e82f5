"""`hf-mwp train`: fine-tune a solver on a data set."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...building.solver_building import build_solver
from ...building.solver_options import ModelArguments
from ...runs.run_arguments import RunArguments
from ...tasks.data_options import DataArguments
from ...tasks.math_word_problems import MathWordProblems
from ..options.parsing import parse
from ..options.training_options import TrainingOptions
from .training import run_command


if TYPE_CHECKING:
    from ...trainers import SolverTrainer

COMMON = {
    DataArguments: ("dataset", "fold", "extra_train"),
    ModelArguments: ("encoder", "encoder_config", "tokenizer", "solver"),
    TrainingOptions: (
        "output_dir",
        "num_train_epochs",
        "per_device_train_batch_size",
        "learning_rate",
        "decoder_learning_rate",
        "eval_strategy",
        "save_strategy",
        "load_best_model_at_end",
        "seed",
    ),
    RunArguments: ("resume", "overwrite"),
}


def argument_types() -> list[type]:
    """Dataclasses whose fields are the options."""
    from ...trainers import SolverConfig

    return [DataArguments, ModelArguments, RunArguments, SolverConfig]


def run(argv: list[str]) -> int:
    """Trains a solver; see `hf-mwp train --help`. Also runs under `torchrun` and `accelerate launch`."""
    (data_args, model_args, run_args, config), values = parse(
        "train",
        "Fine-tune a solver of math word problems: an encoder, pretrained or from random weights, and a tree decoder.",
        argument_types,
        argv,
        common=COMMON,
    )

    def make_trainer(data: MathWordProblems) -> SolverTrainer:
        from ...trainers import SolverTrainer

        model, processor = build_solver(model_args, data.train, data.language, data_args.numerals)
        return SolverTrainer(
            model=model,
            args=config,
            train_dataset=data.train,
            eval_dataset=data.validation,
            processing_class=processor,
        )

    return run_command("train", "solver", values, data_args, run_args, config, make_trainer)
