"""Card, record and upload of the model of a trainer."""

from collections.abc import Sequence
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass, fields, replace
from numbers import Real
from pathlib import Path
from typing import Any

from transformers import Trainer
from transformers.trainer_utils import has_length

from hf_mwp.solver.data.data_error import DataError
from hf_mwp.solver.data.load_report import dataset_report
from hf_mwp.utils.checks import as_list
from hf_mwp.utils.downloads import missing_folder
from hf_mwp.utils.files import shorten_paths
from hf_mwp.utils.option import affects_result, default_of
from hf_mwp.utils.run_folder import describe_environment, plain

from .model_card import ModelFigures, TrainingStage
from .push_solver import Publication, push_trained_model
from .run_records import HIDDEN


_SPEED = ("runtime", "samples_per_second", "steps_per_second")


@dataclass(frozen=True)
class CardFields:
    """
    Arguments of `Trainer.create_model_card`, which the example scripts of Transformers pass to `push_to_hub`.

    Args:
        language (`str` or `list[str]`, *optional*): Languages of the model.
        license (`str`, *optional*): Licence of the weights.
        tags (`str` or `list[str]`, *optional*): Tags in addition to the generated ones.
        model_name (`str`, *optional*): Title of the card.
        finetuned_from (`str`, *optional*): Hub id of the model that was trained. A local folder is left out.
        tasks (`str` or `list[str]`, *optional*): Tasks of the model. The Hub shows the first one.
        dataset_tags (`str` or `list[str]`, *optional*): Hub ids of the training datasets.
        dataset (`str` or `list[str]`, *optional*): Name of the dataset in the card's table of results.
        dataset_args (`str` or `list[str]`, *optional*): Its configuration, for the record.
    """

    language: str | Sequence[str] | None = None
    license: str | None = None
    tags: str | Sequence[str] | None = None
    model_name: str | None = None
    finetuned_from: str | None = None
    tasks: str | Sequence[str] | None = None
    dataset_tags: str | Sequence[str] | None = None
    dataset: str | Sequence[str] | None = None
    dataset_args: str | Sequence[str] | None = None

    @property
    def metadata(self) -> dict[str, Any]:
        """Metadata of the card that are given, by their names on the Hub."""
        base = self.finetuned_from
        is_local = base is not None and (Path(base).exists() or missing_folder(base) is not None)
        metadata = {
            "language": self.language,
            "license": self.license,
            "model_name": self.model_name,
            "base_model": None if is_local else base,
            "pipeline_tag": next(iter(as_list(self.tasks)), None),
            "datasets": as_list(self.dataset_tags),
        }
        return {name: value for name, value in metadata.items() if value}

    def name_dataset(self, figures: ModelFigures) -> ModelFigures:
        """Return an evaluation with the given name of its dataset."""
        names = shorten_paths(as_list(self.dataset))
        return replace(figures, dataset=", ".join(names)) if names else figures

    def describe_data(self, stage: TrainingStage) -> TrainingStage:
        """Return a stage whose record has the given dataset, and whose task has the given tags."""
        data = {"dataset": self.dataset, "dataset_args": self.dataset_args}
        options = {name: shorten_paths(value) for name, value in data.items() if value}
        tags = [*stage.task["tags"], *as_list(self.tags)]
        return replace(stage, options={**stage.options, **options}, task={**stage.task, "tags": tags})


def push_trainer(
    trainer: Trainer,
    card: CardFields,
    figures: Sequence[ModelFigures] | None = None,
    stages: Sequence[TrainingStage] | None = None,
    **options: Any,
) -> Publication | Future:
    """Publish the saved model of a trainer with the `options` of [`push_trained_model`]. `figures` and `stages` are by
    default the last evaluation and the arguments of the trainer."""
    if figures is None:
        figures = [card.name_dataset(evaluation) for evaluation in evaluated_figures(trainer)]
    if stages is None:
        stages = [card.describe_data(training_stage(trainer))]
    return push_trained_model(
        trainer.args.output_dir,
        trainer.accelerator.unwrap_model(trainer.model),
        trainer.hub_model_id,
        processor=trainer.processing_class,
        figures=figures,
        stages=stages,
        metadata=card.metadata,
        **options,
    )


def training_stage(trainer: Trainer) -> TrainingStage:
    """Return options that differ from the defaults (without local paths), seed and environment of a trainer."""
    args = trainer.args
    options = {}
    for option in fields(args):
        value = getattr(args, option.name)
        if affects_result(option) and option.name not in HIDDEN and value != default_of(option):
            options[option.name] = shorten_paths(plain(value))
    record = {"seed": args.seed, **describe_environment()}
    for log in trainer.state.log_history:
        if "train_runtime" in log:
            # The last training counts.
            record["wall_seconds"] = log["train_runtime"]
    name = type(trainer).__name__
    return TrainingStage(name, name, options, record, _task(trainer))


def evaluated_figures(trainer: Trainer) -> list[ModelFigures]:
    """Return the last evaluation of the current weights (with `load_best_model_at_end`, of the best checkpoint), if
    there is one on a single split of known length, and its metric is not a loss and between 0 and 1."""
    state = trainer.state
    rows = trainer.eval_dataset
    metric, items = next(iter(_task(trainer)["metrics"].values()))
    if isinstance(rows, dict) or not has_length(rows) or metric.endswith("loss"):
        return []
    num_outdated = vars(state).get("num_outdated_logs", 0)
    step = state.global_step
    if trainer.args.load_best_model_at_end and state.best_global_step and not num_outdated:
        step = state.best_global_step
    evaluation = None
    for log in state.log_history[num_outdated:]:
        # Leave out evaluations of other rows (`trainer.evaluate(rows)`).
        is_of_rows = log.get(f"eval_{items}", len(rows)) == len(rows)
        if log.get("step") == step and f"eval_{metric}" in log and is_of_rows:
            evaluation = log
    if evaluation is None or not 0 <= evaluation[f"eval_{metric}"] <= 1:
        return []
    report = {items: len(rows)}
    for name, value in evaluation.items():
        if name.startswith("eval_") and not name.endswith(_SPEED) and isinstance(value, Real):
            report[name.removeprefix("eval_")] = value
    dataset = "evaluation data"
    with suppress(DataError, AttributeError):
        dataset = dataset_report(rows).dataset
    answer_match = getattr(trainer.args, "answer_match", "annotated")
    num_beams = trainer.rules.num_beams
    return [ModelFigures("this model", dataset, "evaluation split", num_beams, answer_match, {"all": report})]


def _task(trainer: Trainer) -> dict[str, Any]:
    """Return the card fields (tags, items, metrics) of the trainer's task, as [`~tasks.Task.card`] does."""
    if trainer.rules.card is not None:
        return dict(trainer.rules.card)
    metric = (trainer.args.metric_for_best_model or "loss").removeprefix("eval_")
    metrics = {metric.replace("_", " "): (metric, "num_examples")}
    return {"tags": ["hf_mwp"], "items": "examples", "metrics": metrics}
