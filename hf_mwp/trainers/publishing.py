"""Publishing of a trainer's model, with its training options and metrics."""

from collections.abc import Sequence
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import fields
from numbers import Real
from pathlib import Path
from typing import Any

from transformers import Trainer
from transformers.trainer_utils import has_length

from ..data.data_error import DataError
from ..data.reading.load_report import dataset_report
from ..hub import ModelFigures, Publication, TrainingStage, push_trained_model
from ..hub.push_solver import open_repository
from ..hub.run_records import HIDDEN
from ..options import affects_result, default_of
from ..store.files import shorten_paths
from ..store.runs.run_folder import describe_environment, plain


_SPEED = ("runtime", "samples_per_second", "steps_per_second")


class Publishing:
    """Mixin for trainers that publishes the files of [`push_solver_to_hub`] instead of the whole output folder."""

    def init_hf_repo(self, token: str | None = None, private: bool | None = None) -> None:
        """Create the repository (private by default). A repository with different content is refused."""
        if self.is_world_process_zero():
            args = self.args
            name = args.hub_model_id or Path(args.output_dir).absolute().name
            private = args.hub_private_repo if private is None else private
            token = token or args.hub_token
            self.hub_model_id = open_repository(name, private=private, revision=args.hub_revision, token=token).id
            self.push_in_progress = None

    def push_to_hub(
        self,
        commit_message: str | None = "End of training",
        blocking: bool = True,
        token: str | None = None,
        revision: str | None = None,
        private: bool | None = None,
        figures: Sequence[ModelFigures] | None = None,
        stages: Sequence[TrainingStage] | None = None,
    ) -> Publication | Future | None:
        """
        Save the model and publish the same files as [`push_solver_to_hub`]: card, configuration, one weight file in
        half precision, processor and run record. A new repository is private unless `private` or `hub_private_repo` is
        `False`. `figures` and `stages` of card and record are by default the last evaluation and the arguments.
        Returns a [`~hub.Publication`], or with `blocking=False` its `Future`; `None` in all processes but the first.
        """
        self.callback_handler.on_push_begin(self.args, self.state, self.control)
        if self.hub_model_id is None:
            self.init_hf_repo(token, private)
        self.save_model(_internal_call=True)
        if not self.is_world_process_zero():
            return None
        return push_trained_model(
            self.args.output_dir,
            self._own_model,
            self.hub_model_id,
            processor=self.processing_class,
            figures=evaluated_figures(self) if figures is None else figures,
            stages=[training_stage(self)] if stages is None else stages,
            revision=revision or self.args.hub_revision,
            commit_message=commit_message,
            token=token or self.args.hub_token,
            blocking=blocking,
        )


def training_stage(trainer: Trainer) -> TrainingStage:
    """Return options that differ from the defaults (without local paths), seed and environment of a trainer."""
    args = trainer.args
    options = {
        each.name: shorten_paths(plain(getattr(args, each.name)))
        for each in fields(args)
        if affects_result(each) and each.name not in HIDDEN and getattr(args, each.name) != default_of(each)
    }
    seconds = [each["train_runtime"] for each in trainer.state.log_history if "train_runtime" in each]
    record = {"seed": args.seed, **describe_environment()} | ({"wall_seconds": seconds[-1]} if seconds else {})
    name = type(trainer).__name__
    return TrainingStage(name, name, options, record, _task(trainer))


def evaluated_figures(trainer: Trainer) -> list[ModelFigures]:
    """Return the last evaluation of the current weights (with `load_best_model_at_end`, of the best checkpoint), if
    there is one on a single split of known length, and its metric is not a loss and between 0 and 1."""
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
    reports = {"all": {items: len(rows)} | report}
    dataset, beams = "evaluation data", trainer.adapter.num_beams
    with suppress(DataError, AttributeError):
        dataset = dataset_report(rows).dataset
    return [ModelFigures("this model", dataset, "evaluation split", beams, args.answer_match, reports)]


def _task(trainer: Trainer) -> dict[str, Any]:
    """Return the card fields (tags, items, metrics) of the trainer's task, as [`~tasks.Task.card`] does."""
    if trainer.adapter.card is not None:
        return dict(trainer.adapter.card)
    metric = (trainer.args.metric_for_best_model or "loss").removeprefix("eval_")
    metrics = {metric.replace("_", " "): (metric, "num_examples")}
    return {"tags": ["hf_mwp"], "items": "examples", "metrics": metrics}
