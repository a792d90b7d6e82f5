"""Consecutive distillations, each in a separate folder that later runs reuse."""

import copy
import hashlib
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from accelerate.utils import broadcast_object_list
from transformers import PreTrainedModel

from hf_mwp.compress.distillation.objectives import Objective
from hf_mwp.compress.models.fingerprints import describe, hash_processing, row_key
from hf_mwp.utils.checkpoints import remove_checkpoints
from hf_mwp.utils.files import write_json
from hf_mwp.utils.job import Job, digest_of
from hf_mwp.utils.option import WITHOUT_EFFECT
from hf_mwp.utils.run_folder import START_OPTIONS

from .base_config import BaseConfig
from .distillation_config import DistillationConfig, show_attention
from .distillation_trainer import DistillationTrainer


class TrainingStages:
    """
    Consecutive distillations, each in a folder named by a fingerprint of `args` (except the names in `free`), `data`
    (datasets, collator, processor), `objectives` (copied for each training) and further `methods`. Completed folders
    are reused, interrupted trainings resume. With several processes, each process must run the same calls. `options`
    are additional arguments of [`DistillationTrainer`].
    """

    def __init__(
        self,
        parent: str | Path,
        args: DistillationConfig,
        data: Mapping[str, Any],
        objectives: Sequence[Objective],
        free: Collection[str],
        methods: Iterable[Any] = (),
        **options,
    ) -> None:
        self.parent = parent
        self.args = args
        self.objectives = objectives
        self.options = {**data, **options}
        methods = [*objectives, *methods]
        for name in ("compute_metrics", "preprocess_logits_for_metrics"):
            method = self.options.get(name)
            if method is not None:
                # The metrics choose checkpoints. Of a method, its object is not described: a task refers to all data.
                methods.append(getattr(method, "__func__", method))
        self.depends_on = describe_training(args, data, methods, free)

    def job(self, name: str, **inputs) -> Job:
        """Return the job of a stage, which depends on the training and on further `inputs`."""
        return Job.named(self.parent, name, {**self.depends_on, **inputs})

    def make_trainer(
        self, student: PreTrainedModel, teacher: PreTrainedModel, args: DistillationConfig | None = None, **changes
    ) -> DistillationTrainer:
        """Return a trainer, whose metric is checked and which may change both models; `changes` replace arguments."""
        show_attention(self.objectives, student, teacher)
        args = copy.deepcopy(args or self.args)
        objectives = copy.deepcopy(list(self.objectives))
        trainer = DistillationTrainer(student, teacher, args, objectives=objectives, **(self.options | changes))
        trainer.check_metric()
        return trainer

    def train(
        self,
        job: Job,
        student: PreTrainedModel,
        teacher: PreTrainedModel,
        finish: Callable[[DistillationTrainer], Mapping[str, Any]],
        on_trainer: Callable[[DistillationTrainer], None] | None = None,
        ignore_keys: Sequence[str] | None = None,
        **changes,
    ) -> dict[str, Any]:
        """Train a copy of the student in the folder of `job`, unless it is complete, and return the metrics stored
        there. `on_trainer` receives the trainer before training; `finish` returns further metrics to store.
        Evaluations ignore the outputs in `ignore_keys`."""
        args = copy.deepcopy(self.args)
        args.output_dir = str(job.path)

        def work() -> None:
            # Accelerate modifies the models that it prepares.
            trainer = self.make_trainer(copy.deepcopy(student), copy.deepcopy(teacher), args, **changes)
            if on_trainer is not None:
                on_trainer(trainer)
            checkpoint = None if args.save_only_model else job.checkpoint
            trainer.train(resume_from_checkpoint=checkpoint, ignore_keys_for_eval=ignore_keys)
            trainer.save_model()
            trainer.save_state()
            evaluated = {} if trainer.eval_dataset is None else trainer.evaluate(ignore_keys=ignore_keys)
            metric = (trainer.args.metric_for_best_model or "loss").removeprefix("eval_")
            metrics = {
                "metric": f"eval_{metric}",
                "greater_is_better": bool(trainer.args.greater_is_better),
                "eval": evaluated,
                **finish(trainer),
            }
            if trainer.is_world_process_zero():
                write_json(job.path / "metrics.json", metrics)

        run_together(job, work, args)
        return job.metrics


def describe_training(
    args: BaseConfig, data: Mapping[str, Any], methods: Iterable[Any], free: Collection[str] = ()
) -> dict[str, Any]:
    """Return what a training depends on: its arguments (except the names in `free`), data and methods."""
    ignored = WITHOUT_EFFECT | {*START_OPTIONS, *free}
    options = {name: value for name, value in args.to_dict().items() if name not in ignored}
    datasets = {"train_dataset": data["train_dataset"]}
    if isinstance(data["eval_dataset"], Mapping):
        datasets |= data["eval_dataset"]
    else:
        datasets["eval_dataset"] = data["eval_dataset"]
    return {
        **options,
        "rows": digest_of_rows(datasets),
        "data_collator": digest_of(describe(data["data_collator"])),
        "processing_class": hash_processing(data["processing_class"]),
        "methods": [digest_of(describe(method)) for method in methods],
    }


def digest_of_rows(datasets: Mapping[str, Iterable[Any] | None]) -> str:
    """Return a fingerprint of named datasets."""
    digest = hashlib.blake2b(digest_size=16)
    for name, rows in datasets.items():
        digest.update(name.encode())
        if rows is None:
            rows = ()
        for row in rows:
            digest.update(row_key(row))
    return digest.hexdigest()


def run_together(job: Job, work: Callable[[], None], args: BaseConfig) -> None:
    """Run a job in all processes, then remove its checkpoints; see [`Job`]."""
    job.check_folder()
    state = args.distributed_state

    def begin() -> None:
        # The main process may have waited for another run of the job, so it tells the others to work.
        broadcast_object_list([True])
        work()

    if state is None or state.is_main_process:
        # A run that is killed in between has its result already.
        if job.run(begin):
            remove_checkpoints(job.path)
        else:
            broadcast_object_list([False])
    elif broadcast_object_list([None])[0]:
        work()
    if state is not None:
        state.wait_for_everyone()
