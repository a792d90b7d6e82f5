"""Training options and metrics that a trainer publishes with its model."""

from __future__ import annotations

from dataclasses import fields
from numbers import Real
from typing import Any

from transformers import Trainer
from transformers.trainer_utils import has_length

from ..data.data_error import DataError
from ..data.reading.load_report import dataset_report
from ..hub.model_card import MATH_WORD_PROBLEMS, ModelFigures, TrainingStage
from ..hub.run_records import PLACES
from ..models.model_kind import kind_of
from ..options import affects_result, default_of
from ..store.files import without_folder
from ..store.runs.run_folder import describe_environment, plain


_SPEED = ("runtime", "samples_per_second", "steps_per_second")


def training_stage(trainer: Trainer) -> TrainingStage:
    """Return options that differ from the defaults (without local paths), seed and environment of a trainer."""
    args = trainer.args
    options = {
        each.name: without_folder(plain(getattr(args, each.name)))
        for each in fields(args)
        if affects_result(each) and each.name not in PLACES and getattr(args, each.name) != default_of(each)
    }
    seconds = [each["train_runtime"] for each in trainer.state.log_history if "train_runtime" in each]
    record = {"seed": args.seed, **describe_environment()} | ({"wall_seconds": seconds[-1]} if seconds else {})
    name = type(trainer).__name__
    return TrainingStage(name, name, options, record, _task(trainer))


def evaluated_figures(trainer: Trainer) -> list[ModelFigures]:
    """
    Return the last evaluation of the trainer's current weights (of the best checkpoint with `load_best_model_at_end`).
    The list is empty without an evaluation or a single evaluation split of known length, or if the metric is a loss or
    not between 0 and 1.
    """
    state, args, rows = trainer.state, trainer.args, trainer.eval_dataset
    metric, items = next(iter(_task(trainer)["metrics"].values()))
    if isinstance(rows, dict) or not has_length(rows) or metric.endswith("loss"):
        return []
    outdated = vars(state).get("num_outdated_logs", 0)
    step = (not outdated and args.load_best_model_at_end and state.best_global_step) or state.global_step
    logs = [each for each in state.log_history[outdated:] if each.get("step") == step and f"eval_{metric}" in each]
    # Leave out evaluations of other rows (`trainer.evaluate(rows)`).
    logs = [each for each in logs if each.get(f"eval_{items}", len(rows)) == len(rows)]
    if not logs or not 0 <= logs[-1][f"eval_{metric}"] <= 1:
        return []
    report = {
        key.removeprefix("eval_"): value
        for key, value in logs[-1].items()
        if key.startswith("eval_") and not key.endswith(_SPEED) and isinstance(value, Real)
    }
    beams = args.num_beams if _solves(trainer) else None
    reports = {"all": {items: len(rows)} | report}
    return [ModelFigures("this model", _dataset_name(rows), "evaluation split", beams, args.answer_match, reports)]


def _solves(trainer: Trainer) -> bool:
    return kind_of(trainer.accelerator.unwrap_model(trainer.model)).is_solver


def _task(trainer: Trainer) -> dict[str, Any]:
    """Return the card fields (tags, items, metrics) of the trainer's task, as [`~tasks.Task.card`] does."""
    if _solves(trainer):
        return dict(MATH_WORD_PROBLEMS)
    metric = (trainer.args.metric_for_best_model or "loss").removeprefix("eval_")
    metrics = {metric.replace("_", " "): (metric, "num_examples")}
    return {"tags": ["hf_mwp"], "items": "examples", "metrics": metrics}


def _dataset_name(rows: Any) -> str:
    try:
        return dataset_report(rows).dataset
    except (DataError, AttributeError):
        return "evaluation data"
