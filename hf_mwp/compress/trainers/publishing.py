"""Publishing of a trainer's model, with its training options and metrics."""

from collections.abc import Sequence
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass, fields, replace
from numbers import Real
from pathlib import Path
from typing import Any

from transformers import Trainer
from transformers.trainer_utils import has_length

from hf_mwp.commands.hub import ModelFigures, Publication, TrainingStage, push_trained_model
from hf_mwp.commands.hub.push_solver import open_repository
from hf_mwp.commands.hub.run_records import HIDDEN
from hf_mwp.solver.data.data_error import DataError
from hf_mwp.solver.data.load_report import dataset_report
from hf_mwp.utils.downloads import missing_folder
from hf_mwp.utils.files import shorten_paths
from hf_mwp.utils.option import affects_result, default_of
from hf_mwp.utils.run_folder import describe_environment, plain


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
            "pipeline_tag": next(iter(_as_list(self.tasks)), None),
            "datasets": _as_list(self.dataset_tags),
        }
        return {name: value for name, value in metadata.items() if value}

    def name_dataset(self, figures: ModelFigures) -> ModelFigures:
        """Return an evaluation with the given name of its dataset."""
        names = shorten_paths(_as_list(self.dataset))
        return replace(figures, dataset=", ".join(names)) if names else figures

    def describe_data(self, stage: TrainingStage) -> TrainingStage:
        """Return a stage whose record has the given dataset, and whose task has the given tags."""
        data = {"dataset": self.dataset, "dataset_args": self.dataset_args}
        options = {name: shorten_paths(value) for name, value in data.items() if value}
        tags = [*stage.task["tags"], *_as_list(self.tags)]
        return replace(stage, options={**stage.options, **options}, task={**stage.task, "tags": tags})


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
        **card: Any,
    ) -> Publication | Future | None:
        """
        Save the model and publish the same files as [`push_solver_to_hub`]: card, configuration, one weight file in
        half precision, processor and run record. A new repository is private unless `private` or `hub_private_repo` is
        `False`. `figures` and `stages` of card and record are by default the last evaluation and the arguments.
        `card` are arguments of `Trainer.create_model_card`, see [`CardFields`]. Returns a [`~hub.Publication`], or
        with `blocking=False` its `Future`; `None` in all processes but the first.
        """
        fields = CardFields(**card)
        self.callback_handler.on_push_begin(self.args, self.state, self.control)
        if self.hub_model_id is None:
            self.init_hf_repo(token, private)
        self.save_model(_internal_call=True)
        if not self.is_world_process_zero():
            return None
        if figures is None:
            figures = [fields.name_dataset(evaluation) for evaluation in evaluated_figures(self)]
        if stages is None:
            stages = [fields.describe_data(training_stage(self))]
        return push_trained_model(
            self.args.output_dir,
            self._own_model,
            self.hub_model_id,
            processor=self.processing_class,
            figures=figures,
            stages=stages,
            metadata=fields.metadata,
            revision=revision or self.args.hub_revision,
            commit_message=commit_message,
            token=token or self.args.hub_token,
            blocking=blocking,
        )


def _as_list(value: str | Sequence[str] | None) -> list[str]:
    if value is None:
        return []
    return [value] if isinstance(value, str) else list(value)


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
    answer_match = getattr(args, "answer_match", "annotated")
    with suppress(DataError, AttributeError):
        dataset = dataset_report(rows).dataset
    return [ModelFigures("this model", dataset, "evaluation split", beams, answer_match, reports)]


def _task(trainer: Trainer) -> dict[str, Any]:
    """Return the card fields (tags, items, metrics) of the trainer's task, as [`~tasks.Task.card`] does."""
    if trainer.adapter.card is not None:
        return dict(trainer.adapter.card)
    metric = (trainer.args.metric_for_best_model or "loss").removeprefix("eval_")
    metrics = {metric.replace("_", " "): (metric, "num_examples")}
    return {"tags": ["hf_mwp"], "items": "examples", "metrics": metrics}
