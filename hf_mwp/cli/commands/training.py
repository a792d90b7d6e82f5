"""What the training commands have in common: the run around a trainer."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from rich.console import Console

from ...runs.main_process import is_main_process
from ...runs.resuming import begin_record, begin_run
from ...runs.run_arguments import RunArguments
from ...runs.run_folder import RunFolder, describe_contents
from ...solving.set_solving import group_reports, predict
from ...tasks.data_options import DataArguments
from ...tasks.problem_data import ProblemData, load_problem_data
from ..terminal.console import accuracy_table, make_console, reason_table
from ..terminal.curve import draw_learning_curve


if TYPE_CHECKING:
    from ...trainers import DistillationTrainer, SolverTrainer
    from ...trainers.base_config import BaseConfig
    from ...trainers.base_trainer import BaseTrainer


def run_command(
    command: str,
    name: str,
    values: Mapping[str, Any],
    data_args: DataArguments,
    run_args: RunArguments,
    config: BaseConfig,
    make_trainer: Callable[[ProblemData], SolverTrainer | DistillationTrainer],
) -> int:
    """
    `hf-mwp train` or `distill`, from its options to the finished folder.

    Args:
        command (`str`): Name of the command, for the run's record.
        name (`str`): What is trained, for bars and tables.
        values (`Mapping`): The options as they were resolved.
        data_args ([`DataArguments`]), run_args ([`RunArguments`]), config ([`BaseConfig`]): The options.
        make_trainer (`Callable`): Makes the trainer once the data is loaded.
    """
    from transformers import set_seed

    console = make_console()
    with RunFolder(config.output_dir, command, values, begin=False) as folder:
        checkpoint, changes = begin_run(folder, config, run_args, console)
        config.disable_tqdm = True
        set_seed(config.seed)
        data = load_problem_data(data_args)
        data.tell(console)
        if data.validation is None:
            turn_off_evaluation(config, console, "No validation part")
        trainer = make_trainer(data)
        begin_record(folder, checkpoint, changes)
        folder.write_json("data.json", data.record())
        folder.finish(run_training(trainer, data, folder, run_args, checkpoint, console, name))
    console.print(describe_contents(folder.path, "model", "processor"))
    return 0


def turn_off_evaluation(config: BaseConfig, console: Console, reason: str) -> None:
    """Turns off what needs examples to evaluate on where there are none."""
    if config.eval_strategy != "no":
        console.print(f"{reason}: nothing is evaluated on the way, and the last weights are kept.")
        config.eval_strategy, config.load_best_model_at_end = "no", False
        config.early_stopping_patience = None


def train_and_save(trainer: BaseTrainer, checkpoint: str | None, console: Console, name: str) -> dict[str, Any]:
    """
    Trains with a progress bar, and saves model and processor.

    Args:
        trainer ([`BaseTrainer`]): Ready to train.
        checkpoint (`str`, *optional*): Checkpoint to go on from.
        console (`rich.console.Console`): Where to print.
        name (`str`): What is trained, for the progress bar.

    Returns:
        `dict`: parameters and training figures, as `metrics.json` holds them.
    """
    from ...metrics import count_parameters
    from ..terminal.progress import RichProgressCallback

    progress = RichProgressCallback.attach(trainer, console, name)
    try:
        result = trainer.train(resume_from_checkpoint=checkpoint)
    finally:
        progress.close()
    trainer.save_model()
    trainer.save_state()
    return {"parameters": count_parameters(trainer.model), "train": dict(result.metrics)}


def run_training(
    trainer: SolverTrainer | DistillationTrainer,
    data: ProblemData,
    folder: RunFolder,
    args: RunArguments,
    checkpoint: str | None,
    console: Console,
    name: str,
) -> dict[str, Any]:
    """
    Trains, saves model and processor, evaluates, and writes figures and curve to the run's folder.

    Args:
        trainer ([`SolverTrainer`] or [`DistillationTrainer`]): Ready to train.
        data ([`ProblemData`]): Its data.
        folder ([`RunFolder`]): The run's record.
        args ([`RunArguments`]): What to do at the end.
        checkpoint (`str`, *optional*): Checkpoint to go on from.
        console (`rich.console.Console`): Where to print.
        name (`str`): What is trained, for the progress bar.

    Returns:
        `dict`: what `metrics.json` holds.
    """
    metrics = train_and_save(trainer, checkpoint, console, name)
    if not is_main_process():
        return metrics

    config, model, processor = trainer.args, trainer.model, trainer.processing_class
    metrics["best_model_checkpoint"] = trainer.state.best_model_checkpoint
    parts = {"validation": data.validation, "test": data.test if args.test else None}
    for part, rows in parts.items():
        if rows is None:
            continue
        beams = (args.test_num_beams or config.num_beams) if part == "test" else config.num_beams
        predictions = predict(
            model,
            processor,
            list(rows),
            batch_size=config.per_device_eval_batch_size,
            num_beams=beams,
            max_decode_length=config.max_decode_length,
            rule=config.answer_rule,
            console=console,
        )
        reports, texts = group_reports(predictions, data.overlap(model, part))
        metrics[part] = {"scheme": data.scheme, "num_beams": beams, "rule": config.answer_rule, "reports": reports}
        metrics[part]["training_texts"] = texts
        title = f"{name}, {part} part ({data.scheme}), {'greedy' if beams == 1 else f'{beams} beams'}"
        console.print(accuracy_table(title, reports, texts["remark"]))
        if part == "test":
            console.print(reason_table(predictions))
    curve = folder.path / "learning_curve.png"
    draw_learning_curve({name: trainer.state.log_history}, curve, title=f"{name} on {data.name}")
    return metrics
