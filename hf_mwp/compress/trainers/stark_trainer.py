"""Trainer that searches for the sparse teacher with the best student (STARK)."""

import copy
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import fields
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from transformers import PreTrainedModel, TrainerCallback
from transformers.trainer_utils import TrainOutput, has_length

from hf_mwp.compress.distillation.cached_teacher import CachedTeacher
from hf_mwp.compress.distillation.objectives import Objective
from hf_mwp.compress.metrics.efficiency import count_parameters
from hf_mwp.compress.models.architecture import count_units
from hf_mwp.compress.models.fingerprints import describe, hash_model, hash_processing
from hf_mwp.compress.pruning.knowledgeable_scores import KnowledgeableScores, UnitScores
from hf_mwp.compress.pruning.removed_units import check_no_gates
from hf_mwp.compress.pruning.score_density import ScoreDensity
from hf_mwp.utils.checked_types import checked
from hf_mwp.utils.files import remove_folder
from hf_mwp.utils.job import Job, digest_of
from hf_mwp.utils.main_process import shards_weights
from hf_mwp.utils.provenance import inherit_training_texts
from hf_mwp.utils.usage_error import UsageError

from .argument_order import in_trainer_order
from .base_trainer import BaseTrainer
from .distillation_config import DistillationConfig, default_objectives
from .distillation_trainer import DistillationTrainer
from .stage_folders import TrainingStages, digest_of_rows, run_together
from .stark_config import StarkConfig
from .stark_student import StarkStudent


# Arguments that do not affect the student of a given teacher.
OF_THE_LOOP = {field.name for field in fields(StarkConfig)} - {field.name for field in fields(DistillationConfig)}


class StarkTrainer(BaseTrainer):
    """
    Trainer that finds the sparse teacher with the best student, in four steps. A trial student learns from the whole
    teacher. The teacher's heads and neurons are scored by expressiveness (gradient of its loss) and
    student-friendliness (gradient of the distillation loss to the trial student). At each sparsity, the heads and
    neurons with the lowest scores are removed. A new student, started from the same weights (rewinding), learns from
    each sparse teacher. The result is the student with the best `metric_for_best_model` on `eval_dataset`.

    Trial student, scores and students are saved in folders of `args.stages_dir`, named by fingerprints of their
    inputs. Later runs reuse completed stages, even with other sparsities and scores; interrupted trainings resume.

    All other methods are those of `Trainer`: they evaluate, save and publish `model`, which is the given student
    before training and the best student afterwards.

    Args:
        model (`PreTrainedModel`): The untrained student, with which each training starts. It is not trained itself.
            Arguments by position are in this order, or in the order of `Trainer` (`model, args, data_collator, ...`)
            with `teacher_model` as a keyword argument.
        teacher_model (`PreTrainedModel`):
            The trained teacher, whose encoder is supported by [`~models.architecture.find_encoder`]. It is not
            changed.
        args ([`StarkConfig`], *optional*): Arguments; they are copied.
        data_collator, train_dataset, eval_dataset, processing_class:
            As in [`DistillationTrainer`]; `eval_dataset` is required.
        score_dataset (`Dataset`, *optional*):
            Labelled rows on which heads and neurons are scored; `eval_dataset` by default.
        scores ([`~pruning.UnitScores`], *optional*):
            Scores of the teacher's heads and neurons to use instead of measured scores; `UnitScores.random(teacher)`
            is STARK-RAND.
        objectives (`Sequence[Objective]`, *optional*): Objectives to use instead of the loss of [`StarkConfig`].
        compute_metrics, preprocess_logits_for_metrics (`Callable`, *optional*): As in `Trainer`.
        callbacks (`Sequence[TrainerCallback]`, *optional*):
            Callbacks of the training of each student, as those of `add_callback`. Removed default callbacks are
            removed there, too. The folders of students depend on the classes of the callbacks, not on their settings.
        on_trainer (`Callable`, *optional*):
            Called with the trainer of a student and the sparsity of its teacher (0: trial student) before training.
        on_scores (`Callable`, *optional*):
            Called with the list of batches to score; returns an iterable of the same batches, such as a progress bar.

    Raises:
        UsageError: Rows for evaluation or scoring are missing, scores belong to a different teacher, the teacher has
            gates, a sparsity would remove everything, or a folder belongs to a different run. Checked before training,
            with `round_to` again after scoring.
        ValueError: The encoder is not supported; also as [`DistillationTrainer`].

    References:
        Yang et al., "Sparse Teachers Can Be Dense with Knowledge" (EMNLP 2022), section 3.

    Example:

    ```python
    >>> trainer = StarkTrainer(
    ...     model=student, teacher_model=teacher, args=StarkConfig("rte", sparsities=[0.1, 0.5]),
    ...     train_dataset=train, eval_dataset=valid, processing_class=tokenizer,
    ... )
    >>> result = trainer.train()
    >>> trainer.chosen.sparsity
    0.5
    >>> [(student.sparsity, student.value) for student in (trainer.trial, *trainer.students)]
    >>> trainer.save_metrics("eval", trainer.evaluate())
    >>> trainer.save_model()
    ```
    """

    config_class = StarkConfig

    @in_trainer_order
    @checked
    def __init__(
        self,
        model: PreTrainedModel,
        teacher_model: PreTrainedModel,
        args: StarkConfig | None = None,
        data_collator: Any = None,
        train_dataset: Any = None,
        eval_dataset: Any = None,
        processing_class: Any = None,
        *,
        score_dataset: Any = None,
        scores: UnitScores | None = None,
        objectives: Sequence[Objective] | None = None,
        compute_metrics: Callable[[Any], Mapping[str, float]] | None = None,
        preprocess_logits_for_metrics: Callable[[Any, Any], Any] | None = None,
        callbacks: Sequence[TrainerCallback | type[TrainerCallback]] | None = None,
        on_trainer: Callable[[DistillationTrainer, float], None] | None = None,
        on_scores: Callable[[Sequence[Any]], Iterable[Any]] | None = None,
    ) -> None:
        if score_dataset is None:
            score_dataset = eval_dataset
        datasets = {"train_dataset": train_dataset, "eval_dataset": eval_dataset}
        for name, rows in {**datasets, "score_dataset": score_dataset}.items():
            if isinstance(rows, dict | str) or not has_length(rows) or not len(rows):
                class_name = type(rows).__name__
                raise UsageError(
                    f"`{name}` must be a single non-empty `datasets.Dataset` or list, got `{class_name}`."
                )
        if args is None:
            args = StarkConfig(output_dir="trainer_output")
        # `BaseTrainer` changes its arguments and its model's config, on which the names of the folders depend.
        stage_args = copy.deepcopy(args)
        stage_args.push_to_hub = False
        self._student = copy.deepcopy(model)
        methods = {
            "compute_metrics": compute_metrics,
            "preprocess_logits_for_metrics": preprocess_logits_for_metrics,
        }
        super().__init__(
            model, copy.deepcopy(args), data_collator, train_dataset, eval_dataset, processing_class, **methods
        )
        self.teacher_model = teacher_model
        self.scores = scores
        self.sparsifier = args.make_sparsifier()
        self.on_trainer = on_trainer
        self.on_scores = on_scores
        self.score_dataset = score_dataset
        self.stages_dir = Path(args.stages_dir or Path(args.output_dir) / "stages")
        self.trial: StarkStudent | None = None
        """Student of the whole teacher: knowledge distillation without STARK."""
        self.students: list[StarkStudent] = []
        """Students of the sparse teachers, ordered by sparsity."""
        self.chosen: StarkStudent | None = None
        """Student with the best metric; if several are equal, the one with the lowest sparsity."""
        self.knowledgeable: KnowledgeableScores | None = None
        """Measured scores, or `None` if `scores` were passed."""
        self._default_callbacks = [*self.callback_handler.callbacks]
        for callback in callbacks or ():
            self.add_callback(callback)
        if objectives is None:
            objectives = default_objectives(args)
        self._data = {**datasets, "processing_class": processing_class, "data_collator": data_collator}
        self.stages = TrainingStages(self.stages_dir, stage_args, self._data, objectives, OF_THE_LOOP, **methods)
        self._check_models()
        self._student_job(self.teacher_model, 0.0).check_folder()

    def train(self, resume_from_checkpoint=None, trial=None, ignore_keys_for_eval=None) -> TrainOutput:
        """
        Train the missing students, and set `model` and `state` to those of the best one, `chosen`.

        Args:
            resume_from_checkpoint (`str` or `bool`, *optional*):
                Interrupted trainings resume in any case. With `True` or the folder of the run, there must be an
                earlier run to resume.
            trial (*optional*): Not supported: there is no hyperparameter search.
            ignore_keys_for_eval (`list[str]`, *optional*): As in `Trainer`.

        Returns:
            `TrainOutput`: Steps, training loss and metrics of the training of the best student, with the sparsity of
            its teacher as the metric `train_sparsity`.

        Raises:
            ValueError: FSDP or DeepSpeed's ZeRO-3 splits the weights, or there is nothing to resume.
        """
        if shards_weights(self.args):
            raise ValueError("FSDP and DeepSpeed's ZeRO-3 split parameters, so that they cannot be scored. Use DDP.")
        if trial is not None:
            raise ValueError("`StarkTrainer` supports no hyperparameter search. Omit `trial`.")
        if resume_from_checkpoint:
            self._check_resumed(resume_from_checkpoint)
        self.trial = self._teach(self.teacher_model, 0.0, ignore_keys_for_eval)
        if self.scores is None:
            self.knowledgeable = self._score(self.trial)
            self.scores = self.knowledgeable.combined(self.args.expressiveness_weight)
        sparsities = self.args.sparsities
        if self.args.auto_sparsity:
            sparsities = [ScoreDensity.of(self.scores.heads).sparsity]
        # Check all sparsities before the first sparse teacher is used.
        for sparsity in sparsities:
            self.sparsifier.check(self.teacher_model, self.scores, sparsity)
        self.students = []
        for sparsity in sparsities:
            student = self.trial
            if sparsity:
                teacher = self.sparsifier.sparse(self.teacher_model, self.scores, sparsity)
                inherit_training_texts(teacher, self.teacher_model)
                student = self._teach(teacher, sparsity, ignore_keys_for_eval)
            self.students.append(student)
        self.chosen = max(self.students, key=lambda student: student.merit)
        self._use(self.chosen)
        return self.chosen.train_output()

    def _check_resumed(self, resume_from_checkpoint: str | bool) -> None:
        """Raise `ValueError` if there is nothing to resume, or not in this folder."""
        folders = [Path(self.args.output_dir).absolute(), self.stages_dir.absolute()]
        if resume_from_checkpoint is not True and Path(resume_from_checkpoint).absolute() not in folders:
            raise ValueError(
                f"`resume_from_checkpoint` must be True or {self.args.output_dir}, got {resume_from_checkpoint!r}. "
                "Each student resumes from its own last checkpoint."
            )
        if not self._student_job(self.teacher_model, 0.0).is_begun:
            raise ValueError(f"There is no run with these models, data and arguments to resume in {self.stages_dir}.")

    def _use(self, student: StarkStudent) -> None:
        """Evaluate, save and publish this student from now on."""
        self.model = student.load().to(self.args.device)
        self.model_wrapped = self.model
        self.callback_handler.model = self.model
        # `Trainer` prepares a model in its first evaluation, if there is no prepared one.
        self.accelerator.free_memory()
        self.state = student.load_state()
        self.state.is_local_process_zero = self.is_local_process_zero()
        self.state.is_world_process_zero = self.is_world_process_zero()

    def _added_callbacks(self) -> list[TrainerCallback]:
        """Return the callbacks that are called in the training of each student besides the default ones."""
        callbacks = self.callback_handler.callbacks
        return [callback for callback in callbacks if callback not in self._default_callbacks]

    def _remove_callbacks(self, trainer: DistillationTrainer) -> None:
        """Remove the default callbacks from the trainer of a student that were removed from this trainer."""
        classes = {type(callback) for callback in self.callback_handler.callbacks}
        for callback in [*trainer.callback_handler.callbacks]:
            if type(callback) not in classes:
                trainer.remove_callback(callback)

    def _check_models(self) -> None:
        """Raise the errors of trainers and sparsifier before the first training."""
        check_no_gates(self.teacher_model)
        args = copy.deepcopy(self.stages.args)
        highest = 0.0 if args.auto_sparsity else args.sparsities[-1]
        self.sparsifier.check(self.teacher_model, self.scores, highest)
        with TemporaryDirectory() as args.output_dir:
            # A trainer runs both models on a few examples.
            trainer = self.stages.make_trainer(copy.deepcopy(self._student), copy.deepcopy(self.teacher_model), args)
        if self.scores is None:
            try:
                trainer.rules.training_rows(self.score_dataset)
            except ValueError as error:
                raise UsageError(f"Heads and neurons are scored on `score_dataset`: {error}") from error

    def _teach(
        self, teacher: PreTrainedModel, sparsity: float, ignore_keys: Sequence[str] | None = None
    ) -> StarkStudent:
        """Train a student of a teacher, from the same initial weights as all other students."""
        job = self._student_job(teacher, sparsity)

        def finish(trainer: DistillationTrainer) -> dict[str, Any]:
            # Other runs may use the outputs of the whole teacher.
            if sparsity or self.args.teacher_cache_dir is None:
                _remove_cache(trainer)
            heads, neurons = count_units(teacher)
            return {"heads": heads, "neurons": neurons, "teacher_parameters": count_parameters(teacher)}

        def begin(trainer: DistillationTrainer) -> None:
            self._remove_callbacks(trainer)
            if self.on_trainer is not None:
                self.on_trainer(trainer, sparsity)

        record = self.stages.train(
            job, self._student, teacher, finish, begin, ignore_keys, callbacks=self._added_callbacks()
        )
        return StarkStudent(
            sparsity,
            heads=tuple(record["heads"]),
            neurons=tuple(record["neurons"]),
            teacher_parameters=record["teacher_parameters"],
            folder=job.path,
            metrics=record["eval"],
            metric=record["metric"],
            greater_is_better=record["greater_is_better"],
            model_class=type(self._student),
        )

    def _student_job(self, teacher: PreTrainedModel, sparsity: float) -> Job:
        inputs: dict[str, Any] = {"student": hash_model(self._student), "teacher": hash_model(teacher)}
        callbacks = self._added_callbacks()
        if callbacks:
            # Callbacks may hold anything, such as times or open files, so only their classes are described.
            inputs["callbacks"] = [describe(type(callback)) for callback in callbacks]
        name = "sparse" if sparsity else "trial"
        return self.stages.job(name, **inputs)

    def _score(self, trial: StarkStudent) -> KnowledgeableScores:
        """Compute the expressiveness and the student-friendliness of the teacher's heads and neurons."""
        args = self.stages.args
        student = trial.load()
        names = ("temperature", "per_example", "unstructured", "score_batch_size", "bf16")
        depends_on = {
            **{name: getattr(args, name) for name in names},
            "data_collator": digest_of(describe(self._data["data_collator"])),
            "processing_class": hash_processing(self.processing_class),
            "teacher": hash_model(self.teacher_model),
            "student": hash_model(student),
            "rows": digest_of_rows({"score_dataset": self.score_dataset}),
        }
        job = Job.named(self.stages_dir, "scores", depends_on)

        def measure() -> None:
            score_args = copy.deepcopy(args)
            score_args.eval_strategy = "no"
            score_args.load_best_model_at_end = False
            score_args.early_stopping_patience = None
            score_args.output_dir = str(job.path)
            score_args.cache_teacher_outputs = False
            teacher = copy.deepcopy(self.teacher_model)
            trainer = self.stages.make_trainer(
                student, teacher, score_args, train_dataset=self.score_dataset, eval_dataset=None
            )
            if not trainer.is_world_process_zero():
                return
            batches = list(trainer.batches_in_order(args.score_batch_size))
            if self.on_scores is not None:
                batches = self.on_scores(batches)
            unwrap = trainer.accelerator.unwrap_model
            teacher = unwrap(trainer.teacher_model, keep_fp32_wrapper=False, keep_torch_compile=False)
            # Gradients would underflow in fp16, so only bf16 uses autocast.
            precision = trainer.accelerator.autocast() if args.bf16 else nullcontext()
            with precision:
                scores = self.sparsifier.measure(teacher, batches, trainer.model, args.temperature, args.per_example)
            scores.save(job.path)

        run_together(job, measure, args)
        return KnowledgeableScores.load(job.path)


def _remove_cache(trainer: DistillationTrainer) -> None:
    if isinstance(trainer.teacher_source, CachedTeacher) and trainer.is_world_process_zero():
        folder = trainer.teacher_source.cache.folder
        remove_folder(folder)
        if not any(folder.parent.iterdir()):
            folder.parent.rmdir()
