"""Training runs: a solver or classifier fine-tuned or distilled on a task, an encoder pretrained on texts."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..building.pretraining import PretrainingArguments
from ..building.solver import SolverArguments
from ..building.student import StudentArguments, TeacherArguments
from ..options import option_values
from ..store.runs.main_process import is_main_process
from ..store.runs.run_folder import RunFolder
from .data_options import TaskArguments
from .evaluation import Evaluation, evaluate_splits
from .make_task import data_record, make_task, tell_data
from .pictures import draw_learning_curve
from .pretraining_corpus import CorpusArguments, make_pretraining_trainer
from .reporter import SILENT, Reporter
from .resuming import begin_record, begin_run
from .run_arguments import ResumeArguments, RunArguments
from .task import Task


if TYPE_CHECKING:
    from ..trainers import DistillationConfig, PreTrainingConfig, SolverTrainingConfig
    from ..trainers.base_config import BaseConfig
    from ..trainers.base_trainer import BaseTrainer


@dataclass(frozen=True)
class RunResult:
    """
    Result of a run.

    Args:
        folder (`Path`): Its folder, with model, processor and records.
        metrics (`Mapping[str, Any]`): Content of `metrics.json`.
        task ([`Task`], *optional*): The task.
        evaluations (`Mapping[str, Evaluation]`, *optional*): Predictions of the trained model, by split.
    """

    folder: Path
    metrics: Mapping[str, Any]
    task: Task | None = None
    evaluations: Mapping[str, Evaluation] = field(default_factory=dict)


def train(
    data_args: TaskArguments,
    solver_args: SolverArguments,
    run_args: RunArguments,
    config: SolverTrainingConfig,
    values: Mapping[str, Any] | None = None,
    reporter: Reporter = SILENT,
) -> RunResult:
    """
    Fine-tune a solver or, with a task of GLUE, a classifier, and measure it: `hf-mwp train`.

    Args:
        data_args ([`TaskArguments`]), solver_args ([`SolverArguments`]), run_args ([`RunArguments`]), config ([`SolverTrainingConfig`]):
            Options of the command.
        values (`Mapping[str, Any]`, *optional*):
            Options as the run's record shows them; those of the arguments by default.
        reporter ([`Reporter`], *optional*):
            Receives messages and progress.

    Raises:
        UsageError: the folder holds another run, or model, data and options do not suit each other.

    Example:

    ```python
    >>> config = SolverTrainingConfig("runs/teacher", num_train_epochs=10)
    >>> result = train(TaskArguments("math23k"), SolverArguments(encoder="bert-base-chinese"), RunArguments(), config)
    >>> result.metrics["test"]["reports"]["all problems"]["answer_accuracy"]
    ```
    """  # noqa: E501 (a signature)
    task = make_task(data_args, config)

    def make() -> BaseTrainer:
        return task.make_trainer(config, *task.build_model(solver_args))

    values = values or option_values(data_args, solver_args, run_args, config)
    return train_on_task(task, make, "train", task.kind, run_args, config, values, reporter)


def distill(
    data_args: TaskArguments,
    teacher_args: TeacherArguments,
    student_args: StudentArguments,
    run_args: RunArguments,
    config: DistillationConfig,
    values: Mapping[str, Any] | None = None,
    reporter: Reporter = SILENT,
) -> RunResult:
    """Train a student after one or several frozen teachers, and measure it: `hf-mwp distill`. See [`train`]."""
    task = make_task(data_args, config)

    def make() -> BaseTrainer:
        from ..metrics import describe_compression
        from ..trainers.distillation.default_objectives import default_objectives, show_attention

        teachers, processors = zip(*map(task.load_model, teacher_args.teachers), strict=True)
        student, processor = task.make_student(teachers[0], processors[0], student_args)
        reporter.print(describe_compression(student, teachers[0]))
        show_attention(default_objectives(config), teachers[0], student)
        return task.make_distillation_trainer(
            config, student, processor, teacher_model=teachers, teacher_processing_class=processors
        )

    values = values or option_values(data_args, teacher_args, student_args, run_args, config)
    return train_on_task(task, make, "distill", "student", run_args, config, values, reporter)


def train_on_task(
    task: Task,
    make: Callable[[], BaseTrainer],
    command: str,
    name: str,
    args: RunArguments,
    config: BaseConfig,
    values: Mapping[str, Any],
    reporter: Reporter = SILENT,
) -> RunResult:
    """Train with the trainer that `make` returns, and measure the model; the other arguments are as in [`_run`]."""
    evaluations: dict[str, Evaluation] = {}

    def make_trainer(folder: RunFolder) -> tuple[BaseTrainer, dict[str, Any]]:
        tell_data(task, reporter)
        if task.split("validation") is None:
            _turn_off_evaluation(config, "No validation split", reporter)
        return make(), data_record(task)

    def measure(trainer: BaseTrainer) -> dict[str, Any]:
        evaluations.update(evaluate_splits(task, trainer.model, trainer.processing_class, config, args, reporter))
        records = {split: evaluation.record for split, evaluation in evaluations.items()}
        return {"best_model_checkpoint": trainer.state.best_model_checkpoint} | records

    panels = {"training loss": "loss", task.metric.replace("_", " "): f"eval_{task.metric}"}
    folder, metrics = _run(command, name, args, config, values, reporter, make_trainer, measure, panels)
    return RunResult(folder, metrics, task, evaluations)


def pretrain(
    corpus_args: CorpusArguments,
    model_args: PretrainingArguments,
    resume_args: ResumeArguments,
    config: PreTrainingConfig,
    values: Mapping[str, Any] | None = None,
    reporter: Reporter = SILENT,
) -> RunResult:
    """
    Train an encoder on masked language modelling and part-of-speech tagging, and measure it on held-out texts:
    `hf-mwp pretrain`. See [`train`].
    """

    def make_trainer(folder: RunFolder) -> tuple[BaseTrainer, dict[str, Any]]:
        if not config.validation_fraction:
            _turn_off_evaluation(config, "No text is held out", reporter)
        return make_pretraining_trainer(corpus_args, model_args, config, folder.path, reporter)

    def measure(trainer: BaseTrainer) -> dict[str, Any]:
        if trainer.eval_dataset is None:
            return {}
        found = trainer.evaluate(metric_key_prefix="validation")
        return {"validation": {name.removeprefix("validation_"): value for name, value in found.items()}}

    panels = {"masked words, loss": "eval_mlm_loss", "tagging, F1": "eval_pos_f1"}
    values = values or option_values(corpus_args, model_args, resume_args, config)
    return RunResult(
        *_run("pretrain", "student", resume_args, config, values, reporter, make_trainer, measure, panels)
    )


def _run(
    command: str,
    name: str,
    args: ResumeArguments,
    config: BaseConfig,
    values: Mapping[str, Any],
    reporter: Reporter,
    make_trainer: Callable[[RunFolder], tuple[BaseTrainer, dict[str, Any]]],
    measure: Callable[[BaseTrainer], dict[str, Any]],
    panels: Mapping[str, str],
) -> tuple[Path, dict[str, Any]]:
    """
    Train, save model and processor, measure, and leave records and learning curve beside them; the folder and its
    metrics are returned.

    Args:
        command (`str`), values (`Mapping[str, Any]`): Command and options of the run's record.
        name (`str`): Name of the model in tables and progress bars.
        make_trainer (`Callable`): Makes the trainer and the content of `data.json`.
        measure (`Callable`): Metrics of the trained model.
        panels (`Mapping[str, str]`): Keys of the log by the label of their panel in the learning curve.
    """
    from transformers import set_seed

    from ..metrics import count_parameters
    from ..models.lora import merge_lora

    with RunFolder(config.output_dir, command, values, begin=False, for_model=True) as folder:
        checkpoint, changes = begin_run(folder, config, args, reporter)
        config.disable_tqdm = True
        set_seed(config.seed)
        trainer, record = make_trainer(folder)
        begin_record(folder, checkpoint, changes)
        folder.write_json("data.json", record)
        trained, there = (count_parameters(trainer.model, trainable_only=only) for only in (True, False))
        if trained < there:
            reporter.print(f"{trained:,} of {there:,} parameters are trained.")
        with reporter.follow(trainer, name):
            result = trainer.train(resume_from_checkpoint=checkpoint)
        trainer.save_model()
        trainer.save_state()
        # What is measured is what was saved.
        parameters = count_parameters(merge_lora(trainer.model))
        metrics = {"parameters": parameters, "trained_parameters": trained, "train": dict(result.metrics)}
        metrics |= measure(trainer)
        if is_main_process():
            title = f"{name} on {record['dataset']}" if "dataset" in record else "Pretraining"
            history = {name: trainer.state.log_history}
            draw_learning_curve(history, folder.path / "learning_curve.png", title, panels)
        folder.finish(metrics)
    return folder.path, metrics


def _turn_off_evaluation(config: BaseConfig, reason: str, reporter: Reporter) -> None:
    if config.eval_strategy != "no":
        reporter.print(f"{reason}: nothing is evaluated on the way, and the last weights are kept.")
        config.eval_strategy, config.load_best_model_at_end = "no", False
        config.early_stopping_patience = None
