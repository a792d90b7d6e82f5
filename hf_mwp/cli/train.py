"""`hf-mwp train`: fine-tune a solver on a data set."""

from __future__ import annotations

from .building import build_solver
from .console import make_console
from .data_arguments import DataArguments
from .model_arguments import ModelArguments
from .parsing import parse
from .problem_data import load_problem_data
from .run_arguments import RunArguments
from .run_folder import RunFolder
from .training import finish, prepare_config, resume_point, run_training


def run(argv: list[str]) -> int:
    """Trains a solver; see `hf-mwp train --help`. Also runs under `torchrun` and `accelerate launch`."""
    from ..trainers import SolverConfig, SolverTrainer

    (data_args, model_args, run_args, config), values = parse(
        "train",
        "Fine-tune a solver of math word problems: an encoder, pretrained or from random weights, and a tree decoder.",
        [DataArguments, ModelArguments, RunArguments, SolverConfig],
        argv,
    )
    from transformers import set_seed

    console = make_console()
    checkpoint = resume_point(config, run_args)
    set_seed(config.seed)
    data = load_problem_data(data_args)
    console.print(data.summary())
    prepare_config(config, data, console)
    model, processor = build_solver(model_args, data.train, data.language, data_args.numerals)
    folder = RunFolder(config.output_dir, "train", values)
    try:
        folder.write_json("data.json", data.record())
        trainer = SolverTrainer(
            model=model,
            args=config,
            train_dataset=data.train,
            eval_dataset=data.validation,
            processing_class=processor,
        )
        metrics = run_training(trainer, data, folder, run_args, checkpoint, console, "solver")
        finish(folder, metrics, console)
    finally:
        folder.close()
    return 0
