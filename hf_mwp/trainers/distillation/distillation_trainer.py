"""Distillation of a large model into a small one."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice
from pathlib import Path
from typing import Any

import torch
from torch import nn

from ...distillation.compatibility import (
    check_embeddings,
    check_frozen_teacher,
    check_outputs,
    check_reading,
    check_solvers,
)
from ...distillation.feature_projections import FeatureProjections
from ...distillation.features import Features, read_features
from ...distillation.objectives import Objective
from ...distillation.teachers import CachedTeacher, LiveTeacher, TeacherRequest
from ..solver.solver_trainer import SolverTrainer
from .default_objectives import default_objectives
from .distillation_config import DistillationConfig


class DistillationTrainer(SolverTrainer):
    """
    Trains a student to follow a frozen teacher: in its predictions, its hidden states and its embeddings.

    Teacher and student may be any models with the same inputs whose outputs have `logits` and `hidden_states`:
    solvers of math word problems, classifiers, masked language models, encoder-decoder models (of whose states the
    encoder's are compared). With solvers, data and evaluation are as in [`SolverTrainer`].

    The loss is the weighted sum of the parts of its objectives. Those of [`DistillationConfig`], which has their
    formula, are logged as `loss_soft`, `loss_hard`, `loss_hidden_{student layer}` and `loss_embedding`, unweighted.
    While evaluating, the loss is the student's own, which compares with that of other trainers and spares the
    teacher's computation.

    Where the teacher has bottleneck networks, their narrow states are what the student's layers learn from
    (`use_bottlenecks`). Where widths still differ, linear maps are trained with the student, see
    [`FeatureProjections`]. They are saved in checkpoints in a file of their own and resumed from there; checkpoints
    and `save_model` give a plain student.

    Models, layers, widths and classes are checked with two examples before training begins.

    With `cache_teacher_outputs` the teacher is run once over the training rows, not in every epoch, and what is
    compared is kept on disk, see [`~distillation.TeacherCache`]; attention maps are not.

    Args:
        model (`nn.Module`, *optional*): The student.
        teacher_model (`nn.Module`): The teacher: put into evaluation mode, frozen, moved to the device, never changed.
        args ([`DistillationConfig`], *optional*):
            Arguments.
        data_collator, train_dataset, eval_dataset, processing_class, callbacks, kwargs:
            As in [`SolverTrainer`] for solvers, as in `Trainer` otherwise.
        teacher_processing_class ([`MwpProcessor`] or tokenizer, *optional*):
            Only to check that the teacher reads texts as the student does. Without it, models that are no solvers
            must embed equally many tokens.
        objectives (`Sequence[Objective]`, *optional*):
            What the student is asked for, see [`~distillation.objectives.Objective`]; several of a kind may stand side
            by side under different names. The fields of `args` under "Prediction" and "Features" then do nothing, but
            for `projection_learning_rate`. By default, what these fields say.

    Raises:
        ValueError: models that do not fit: other symbols, vocabulary, classes, shared weights, a mapping beyond the
        layers.

    References:
        A Compact Model for Mathematics Problem Representations Distilled from BERT (AAAI 2025), task-specific
        distillation.

    Example:
        >>> trainer = DistillationTrainer(
        ...     model=cut_student(teacher, layers=[0, 2, 4]),
        ...     teacher_model=teacher,
        ...     args=DistillationConfig(output_dir="student", num_train_epochs=8),
        ...     train_dataset=data["train"],
        ...     eval_dataset=data["test"],
        ...     processing_class=processor,
        ... )
        >>> trainer.train()
    """

    config_class = DistillationConfig

    def __init__(
        self,
        model: nn.Module | None = None,
        teacher_model: nn.Module | None = None,
        args: DistillationConfig | None = None,
        data_collator: Any = None,
        train_dataset: Any = None,
        eval_dataset: Any = None,
        processing_class: Any = None,
        *,
        teacher_processing_class: Any = None,
        objectives: Sequence[Objective] | None = None,
        **kwargs,
    ) -> None:
        if not isinstance(teacher_model, nn.Module):
            raise TypeError(f"`teacher_model` must be a model, got `{type(teacher_model).__name__}`.")
        if kwargs.get("compute_loss_func") is not None:
            raise ValueError("`compute_loss_func` is not used in distillation: give `objectives`.")
        if teacher_processing_class is not None:
            check_reading(processing_class, teacher_processing_class)
        self.teacher_model = teacher_model
        self._reads_alike = teacher_processing_class is not None
        super().__init__(model, args, data_collator, train_dataset, eval_dataset, processing_class, **kwargs)
        # The loss is a mean over a batch, whatever the student's `forward` could do with `num_items_in_batch`.
        self.model_accepts_loss_kwargs = False
        self.objectives = default_objectives(self.args) if objectives is None else list(objectives)
        if not self.objectives:
            raise ValueError("Nothing to learn from: all weights of the loss are 0.")
        self.projections = FeatureProjections({})
        self.teacher_model = self.accelerator.prepare_model(teacher_model, evaluation_mode=True)
        # Only the student counts as prepared: `Trainer` looks at that when it evaluates before training.
        self.accelerator.free_memory()
        self.teacher_model.requires_grad_(False).eval()
        if self.train_dataset is not None:
            self._plan()

    def _check_models(self, model: nn.Module | None) -> None:
        if model is not None:
            check_frozen_teacher(model, self.teacher_model)
            if self.is_solver:
                check_solvers(model, self.teacher_model)
            elif not self._reads_alike:
                check_embeddings(model, self.teacher_model)

    def _ancestors(self) -> list[nn.Module]:
        return [*super()._ancestors(), self.teacher_model]

    # Planning

    @property
    def layers(self) -> list[tuple[int, int]]:
        """Pairs (student layer, teacher layer) that are compared."""
        return [pair for each in self.objectives for pair in each.layers]

    @property
    def hidden_weights(self) -> list[float]:
        """The weight of each part of the loss that compares layers."""
        return [weight for each in self.objectives if each.layers for weight in each.parts.values()]

    @torch.no_grad()
    def _plan(self) -> None:
        """Runs both models on two examples, and lets the objectives decide what is compared with what."""
        if self.args.cache_teacher_outputs and not all(each.cacheable for each in self.objectives):
            raise ValueError(
                "Attention matrices of the teacher are not cached: set `cache_teacher_outputs=False`, or compare "
                "something else (`hidden_loss`)."
            )
        self._options = {name: value for each in self.objectives for name, value in each.options.items()}
        was_training = self.model.training
        self.model.eval()
        with torch.random.fork_rng(devices=[]):
            inputs = self._prepare_inputs(self._first_batch())
            models = [self.model, self.teacher_model]
            outputs = [model(**inputs, **self._options) for model in models]
            check_outputs(*outputs)
            models = [self.accelerator.unwrap_model(model) for model in models]
            student, teacher = (Features(o, model=model) for o, model in zip(outputs, models, strict=True))
            for objective in self.objectives:
                objective.plan(student, teacher, inputs)
        self.model.train(was_training)
        parts = [part for each in self.objectives for part in each.parts]
        if len({*parts}) < len(parts):
            raise ValueError(f"Parts of the loss have the names {parts}: give each objective its own (`name=`).")
        self.projections = FeatureProjections(
            {name: widths for each in self.objectives for name, widths in each.projections.items()}
        )
        self._reads = [name for each in self.objectives for name in each.student_reads]
        request = TeacherRequest.of(self.objectives, self.args.cache_top_k)
        self._live_teacher = self.teacher_source = LiveTeacher(self.teacher_model, request)

    def _first_batch(self) -> dict[str, Any]:
        rows = list(islice(self.train_dataset, 2))
        return self._get_collator_with_removed_columns(self.data_collator)(rows)

    def create_optimizer(self, model=None):
        """As in [`SolverTrainer`]; from here on the projections are part of the student."""
        if self.model_init is not None:
            self.projections.detach()
            self._check_models(self.model)
            self._plan()
        self.projections.attach(self.accelerator.unwrap_model(self.model))
        return super().create_optimizer(model)

    def _own_rates(self):
        args = self.args
        rate = args.learning_rate if args.projection_learning_rate is None else args.projection_learning_rate
        return [*super()._own_rates(), (self.projections.module, rate, args.weight_decay)]

    def train(self, resume_from_checkpoint=None, trial=None, ignore_keys_for_eval=None):
        """As in `Trainer`; afterwards, also after an error, the student is without projections."""
        try:
            return super().train(resume_from_checkpoint, trial, ignore_keys_for_eval)
        finally:
            self.projections.detach()

    def _save_optimizer_and_scheduler(self, output_dir: str) -> None:
        if self.args.should_save:
            self.projections.save(output_dir)
        super()._save_optimizer_and_scheduler(output_dir)

    def _load_optimizer_and_scheduler(self, checkpoint: str | None) -> None:
        if checkpoint is not None:
            self.projections.load(checkpoint)
        super()._load_optimizer_and_scheduler(checkpoint)

    # Loss

    def _counts(self, batch: dict[str, Any]) -> dict[str, torch.Tensor | int | None]:
        return {name: count for each in self.objectives for name, count in each.counts(batch).items()}

    def get_train_dataloader(self):
        """As in `Trainer`; with `cache_teacher_outputs`, batches bring the teacher's outputs along."""
        if not (self.args.cache_teacher_outputs and self._live_teacher.request.features):
            return super().get_train_dataloader()
        self.teacher_source = self._cache_teacher()
        with self._collating(self.teacher_source.collator):
            return super().get_train_dataloader()

    def _cache_teacher(self) -> CachedTeacher:
        args = self.args
        return CachedTeacher(
            self._live_teacher,
            self.train_dataset,
            self.data_collator,
            Path(args.teacher_cache_dir or Path(args.output_dir) / "teacher_cache"),
            trim=self._get_collator_with_removed_columns(list),
            prepare=self._prepare_inputs,
            context=self.compute_loss_context_manager,
            length=self._length,
            batch_size=args.per_device_eval_batch_size,
            processing=self.processing_class,
            mixed_precision=self.accelerator.mixed_precision,
            dtype=next(self.model.parameters()).dtype,
            progress=self._report_teacher_cache,
        )

    def _length(self, row: Any) -> int:
        """What is known of the length of a row, so that the cache is built from batches of like lengths."""
        given = row if isinstance(row, dict) else {}
        texts = given.get(self.model.main_input_name)
        return given.get(self.args.length_column_name) or (len(texts) if hasattr(texts, "__len__") else 0)

    def _report_teacher_cache(self, done: int, total: int) -> bool:
        """Tells callbacks that have a method `on_teacher_cache`; whether any has."""
        watching = [each for each in self.callback_handler.callbacks if hasattr(each, "on_teacher_cache")]
        for callback in watching:
            callback.on_teacher_cache(self.args, self.state, self.control, done=done, total=total)
        return bool(watching)

    def compute_loss(self, model, inputs, return_outputs=False, num_items_in_batch=None):
        """The weighted sum of all parts while training, the student's own loss while evaluating."""
        if not model.training:
            return super().compute_loss(model, inputs, return_outputs=return_outputs)
        teacher = self.teacher_source.outputs(inputs)
        student = read_features(model, inputs, self._options, self._reads)
        student.projected = self.projections.read(student.output)
        parts: dict[str, torch.Tensor] = {}
        weights: dict[str, float] = {}
        for objective in self.objectives:
            parts |= objective.losses(student, teacher, inputs)
            weights |= objective.parts
        parts = self._weighed(parts, inputs, num_items_in_batch)
        self.record_loss_parts({f"loss_{name}": part for name, part in parts.items()})
        loss = sum(weights[name] * part for name, part in parts.items())
        return (loss, student.output) if return_outputs else loss
