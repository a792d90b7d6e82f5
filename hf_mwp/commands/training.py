"""Training of a model on a task, which the training commands share."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from transformers import PreTrainedModel, set_seed
from transformers.integrations import unset_hf_deepspeed_config

from hf_mwp.compress.models.lora import merge_lora
from hf_mwp.compress.trainers.base_config import BaseConfig
from hf_mwp.compress.trainers.base_trainer import BaseTrainer
from hf_mwp.solver.metrics import count_parameters
from hf_mwp.utils.main_process import is_main_process, shards_weights
from hf_mwp.utils.option import option_values
from hf_mwp.utils.run_folder import RunFolder

from .hub.run_records import read_figures, read_stage
from .resuming import begin_record, begin_run
from .tasks.evaluation import Evaluation, evaluate_splits
from .tasks.loaded_data import print_data_report
from .tasks.plots import can_draw, draw_learning_curve
from .tasks.reporter import SILENT, Reporter
from .tasks.task import Task


@dataclass(frozen=True)
class RunResult:
    """Result of a run: folder, content of `metrics.json`, task, and evaluations of the trained model by split."""

    folder: Path
    metrics: Mapping[str, Any]
    task: Task | None = None
    evaluations: Mapping[str, Evaluation] = field(default_factory=dict)


def make_trainer(task: Task, config: BaseConfig, model: PreTrainedModel, processor: Any, **teachers) -> BaseTrainer:
    """Return the trainer that fine-tunes a model or, with arguments of `teachers`, distils them into it."""
    trainer_class = task.distillation_class if teachers else task.trainer_class
    arguments = task.trainer_arguments(model, processor, config)
    return trainer_class(args=config, **arguments, **teachers)


def train_on_task(
    task: Task | None,
    make: Callable[[], tuple[Any, dict[str, Any]]],
    command: str,
    name: str,
    options: Sequence[Any],
    reporter: Reporter = SILENT,
) -> RunResult:
    """Train a model, save it with its processor, evaluate it, and save run records and a learning curve in its folder.
    `task` is `None` for pretraining. `make` returns the trainer and the content of `data.json`. `name` is the noun for
    the model in tables. The last two options are a [`ResumeArguments`] (with a task, a [`RunArguments`]) and the
    config of the trainer."""
    args, config = options[-2:]
    evaluations: dict[str, Evaluation] = {}
    with RunFolder(config.output_dir, command, option_values(*options), for_model=True) as folder:
        checkpoint, changes = begin_run(folder, config, args, reporter)
        config.disable_tqdm = True
        set_seed(config.seed)
        if task is not None:
            print_data_report(task, reporter)
        _adapt_to_validation(task, config, reporter)
        # DeepSpeed's ZeRO-3 shards the weights when training begins, not while models are built from each other.
        unset_hf_deepspeed_config()
        trainer, record = make()
        begin_record(folder, checkpoint, changes)
        folder.write_json("data.json", record)
        trained = _train_and_save(trainer, name, checkpoint, folder, reporter)
        model = _saved_model(task, trainer)
        # The metrics describe the saved model, with adapters merged.
        metrics = {"parameters": count_parameters(merge_lora(model)), **trained}
        if task is not None:
            evaluations |= evaluate_splits(task, model, trainer.processing_class, config, args, reporter)
            metrics["best_model_checkpoint"] = trainer.state.best_model_checkpoint
            metrics |= {split: evaluation.record for split, evaluation in evaluations.items()}
        elif trainer.eval_dataset is not None:
            validation = trainer.evaluate(metric_key_prefix="validation")
            metrics["validation"] = {key.removeprefix("validation_"): value for key, value in validation.items()}
        if is_main_process() and can_draw(reporter):
            _draw_history(task, name, trainer.state.log_history, folder.path / "learning_curve.png")
        folder.finish(metrics)
        if config.push_to_hub:
            splits = None if task is None else list(evaluations)
            _publish(trainer, folder.path, splits, reporter)
    return RunResult(folder.path, metrics, task, evaluations)


def _train_and_save(
    trainer: Any, name: str, checkpoint: str | None, folder: RunFolder, reporter: Reporter
) -> dict[str, Any]:
    """Train and save the model, and return the metrics of the training and the number of trained parameters."""
    total = count_parameters(trainer.model)
    num_trainable = count_parameters(trainer.model, trainable_only=True)
    if num_trainable < total:
        reporter.print(f"{num_trainable:,} of {total:,} parameters are trainable.")
    if checkpoint:
        reporter.print(f"Training resumes from {checkpoint}.")
    with reporter.follow(trainer, name):
        result = trainer.train(resume_from_checkpoint=checkpoint)
    with folder.replacing_model() as unfinished:
        # The model is published later, with its metrics.
        trainer.save_model(str(unfinished), _internal_call=True)
    trainer.save_state()
    return {"trained_parameters": num_trainable, "train": dict(result.metrics)}


def _adapt_to_validation(task: Task | None, config: BaseConfig, reporter: Reporter) -> None:
    """Turn off evaluation during training if there are no validation rows."""
    if task is None:
        is_evaluated = config.validation_fraction > 0
    else:
        is_evaluated = task.rows("validation", needed=False) is not None
    if not is_evaluated and config.eval_strategy != "no":
        reporter.print("No validation split: no evaluation during training, and the last weights are kept.")
        config.eval_strategy = "no"
        config.load_best_model_at_end = False
        config.early_stopping_patience = None


def _saved_model(task: Task | None, trainer: Any) -> PreTrainedModel:
    """Return the model to evaluate: in the main process loaded again if the trained weights are sharded."""
    if task is None or not shards_weights(trainer.args) or not is_main_process():
        return trainer.model
    unset_hf_deepspeed_config()
    return task.load_model(trainer.args.output_dir)[0].to(trainer.args.device)


def _draw_history(task: Task | None, name: str, history: Sequence[Mapping[str, Any]], path: Path) -> None:
    """Draw the learning curve of a model on a task, or of pretraining."""
    if task is None:
        panels = {"masked language modelling loss": "eval_mlm_loss", "tagging F1": "eval_pos_f1"}
        title = "Pretraining"
    else:
        panels = {"training loss": "loss", task.metric.replace("_", " "): f"eval_{task.metric}"}
        title = f"{name} on {task.name}"
    draw_learning_curve({name: history}, path, title, panels)


def _publish(trainer: Any, folder: Path, splits: Sequence[str] | None, reporter: Reporter) -> None:
    """Publish the saved model with the metrics of the evaluated splits, if any, and the options of its run."""
    figures = None
    if splits is not None:
        figures = [read_figures(folder, "this model", split) for split in splits]
    stages = []
    if is_main_process():
        stages = [read_stage(folder)]
    published = trainer.push_to_hub(figures=figures, stages=stages)
    if published is not None:
        reporter.print(f"Published as {published.url}.")
