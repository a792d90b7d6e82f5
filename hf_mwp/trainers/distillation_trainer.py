"""Distillation of a large model into a small one."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn

from ..distillation.compatibility import (
    check_embeddings,
    check_features,
    check_frozen_teacher,
    check_reading,
    check_solvers,
)
from ..distillation.feature_matching import FeatureMatching
from ..distillation.feature_projections import FeatureProjections
from ..distillation.label_positions import label_mask, label_offset
from ..losses import HiddenMSELoss, LogitDistillationLoss
from .base_trainer import BaseTrainer
from .cached_teacher import CACHED_OUTPUTS, CachedTeacher
from .distillation_config import HIDDEN_LOSSES, DistillationConfig


class DistillationTrainer(BaseTrainer):
    """
    Trains a student to follow a frozen teacher: in its predictions, its hidden states and its embeddings.

    Teacher and student may be any models with the same inputs whose outputs have `logits` and `hidden_states`:
    solvers of math word problems, classifiers, masked language models, encoder-decoder models (of whose states the
    encoder's are compared). With solvers, data and evaluation are as in [`SolverTrainer`].

    The parts of the loss ([`DistillationConfig`] has the formula) are logged as `loss_soft`, `loss_hard`,
    `loss_hidden_{student layer}` and `loss_embedding`, unweighted. While evaluating, the loss is the student's own,
    which compares with that of other trainers and spares the teacher's computation.

    Where the teacher has bottleneck networks, their narrow states are what the student's layers learn from
    (`use_bottlenecks`). Where widths still differ, linear maps are trained with the student, see
    [`FeatureProjections`]. They are saved in
    checkpoints in a file of their own and resumed from there; checkpoints and `save_model` give a plain student.

    Models, layers, widths and classes are checked with two examples before training begins.

    With `cache_teacher_outputs` the teacher is run once over the training rows, not in every epoch, and what is
    compared is kept on disk, see [`~distillation.TeacherCache`]; attention maps are not.

    Args:
        model (`nn.Module`, *optional*):
            The student.
        teacher_model (`nn.Module`):
            The teacher: put into evaluation mode, frozen, moved to the device, never changed.
        args ([`DistillationConfig`], *optional*):
            Arguments.
        data_collator, train_dataset, eval_dataset, processing_class, callbacks, kwargs:
            As in [`SolverTrainer`] for solvers, as in `Trainer` otherwise.
        teacher_processing_class ([`MwpProcessor`] or tokenizer, *optional*):
            Only to check that the teacher reads texts as the student does. Without it, models that are no solvers
            must embed equally many tokens.
        prediction_loss (`nn.Module`, *optional*):
            In place of [`LogitDistillationLoss`]: called with student logits, teacher logits and, where there are
            logits for each position, a mask of those that count; it returns their mean.
        hidden_loss (`nn.Module`, *optional*):
            In place of `args.hidden_loss`: called with student states, teacher states and a mask. If it has
            `needs_equal_width = False`, it gets states of different width without a linear map. Its attribute `reads`
            says what it gets, see [`~distillation.feature_matching.FeatureMatching`].

    Raises:
        ValueError: models that do not fit: other symbols, vocabulary, classes, shared weights, a mapping beyond the
        layers.

    References:
        A Compact Model for Mathematics Problem Representations Distilled from BERT (AAAI 2025), task-specific
        distillation.

    Example:

    ```python
    >>> trainer = DistillationTrainer(
    ...     model=cut_student(teacher, layers=[0, 2, 4]),
    ...     teacher_model=teacher,
    ...     args=DistillationConfig(output_dir="student", num_train_epochs=8),
    ...     train_dataset=data["train"],
    ...     eval_dataset=data["test"],
    ...     processing_class=processor,
    ... )
    >>> trainer.train()
    ```
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
        prediction_loss: nn.Module | None = None,
        hidden_loss: nn.Module | None = None,
        **kwargs,
    ) -> None:
        if not isinstance(teacher_model, nn.Module):
            raise TypeError(f"`teacher_model` must be a model, got `{type(teacher_model).__name__}`.")
        if kwargs.get("compute_loss_func") is not None:
            raise ValueError(
                "`compute_loss_func` is not used in distillation: give `prediction_loss` or `hidden_loss`."
            )
        if teacher_processing_class is not None:
            check_reading(processing_class, teacher_processing_class)
        self.teacher_model = teacher_model
        self._reads_alike = teacher_processing_class is not None
        super().__init__(
            model=model,
            args=args,
            data_collator=data_collator,
            train_dataset=train_dataset,
            eval_dataset=eval_dataset,
            processing_class=processing_class,
            **kwargs,
        )
        args = self.args
        # The loss is a mean over a batch, whatever the student's `forward` could do with `num_items_in_batch`.
        self.model_accepts_loss_kwargs = False
        # A solver's own loss sums over the nodes of a tree and averages over problems: so must what is added to it.
        reduction = "batchmean" if self.is_solver else "mean"
        self._uses_probabilities = prediction_loss is None
        if prediction_loss is None:
            prediction_loss = LogitDistillationLoss(args.temperature, args.scale_by_square, reduction)
        if hidden_loss is None and args.hidden_loss is not None:
            hidden_loss = HIDDEN_LOSSES[args.hidden_loss]()
        self.prediction_loss = prediction_loss
        self.features = FeatureMatching(
            hidden_loss,
            HiddenMSELoss() if args.embedding_weight else None,
            args.layer_mapping,
            args.hidden_weights,
            args.embedding_weight,
            args.use_bottlenecks,
        )
        if not args.prediction_weight and not self._uses_states:
            raise ValueError("Nothing to learn from: all weights of the loss are 0.")
        self.teacher_model = self.accelerator.prepare_model(teacher_model, evaluation_mode=True)
        # Only the student counts as prepared: `Trainer` looks at that when it evaluates before training.
        self.accelerator.free_memory()
        self.teacher_model.requires_grad_(False).eval()
        # Whether predictions are compared position by position and averaged over all of them.
        self._per_position = False
        self._label_offset = 0
        if self.train_dataset is not None:
            self._plan()

    def _check_models(self, model: nn.Module | None) -> None:
        if model is not None:
            check_frozen_teacher(model, self.teacher_model)
            if self.is_solver:
                check_solvers(model, self.teacher_model)
            elif not self._reads_alike:
                check_embeddings(model, self.teacher_model)

    # Features

    @property
    def projections(self) -> FeatureProjections:
        """The linear maps between different widths."""
        return self.features.projections

    @property
    def layers(self) -> list[tuple[int, int]]:
        """Pairs (student layer, teacher layer) that are compared."""
        return self.features.layers

    @property
    def hidden_weights(self) -> list[float]:
        """The weight of each pair."""
        return self.features.weights

    @property
    def _uses_states(self) -> bool:
        return bool(self.features)

    @torch.no_grad()
    def _plan(self) -> None:
        """Runs both models on two examples, checks that they fit, and decides what is compared with what."""
        if self.features.reads_attention and self.args.cache_teacher_outputs:
            raise ValueError(
                "Attention matrices of the teacher are not cached: set `cache_teacher_outputs=False`, or compare "
                "something else (`hidden_loss`)."
            )
        was_training = self.model.training
        self.model.eval()
        with torch.random.fork_rng(devices=[]):
            inputs = self._prepare_inputs(self._first_batch())
            student, teacher = self._forward(self.model, inputs), self._forward(self.teacher_model, inputs)
            if self._uses_soft_labels and not self.is_solver:
                self._label_offset = label_offset(self.model, inputs)
        self.model.train(was_training)
        check_features(student, teacher, self._uses_states, self._uses_soft_labels, self._uses_probabilities)
        config = getattr(self.accelerator.unwrap_model(self.teacher_model), "config", None)
        self.features.plan(student, teacher, getattr(config, "bottleneck_layers", ()))
        logits = student.get("logits")
        self._per_position = not self.is_solver and logits is not None and logits.dim() > 2

    def _teacher_states(self) -> list[tuple[int, bool]]:
        """As [`~FeatureMatching.teacher_states`]."""
        return self.features.teacher_states()

    def _first_batch(self) -> dict[str, Any]:
        rows = []
        for row in self.train_dataset:
            rows.append(row)
            if len(rows) == 2:
                break
        return self._get_collator_with_removed_columns(self.data_collator)(rows)

    def create_optimizer(self, model=None):
        """As in [`BaseTrainer`]; from here on the projections are part of the student."""
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

    @property
    def _uses_soft_labels(self) -> bool:
        return self.args.prediction_weight > 0 and self.args.soft_label_weight > 0

    @property
    def _uses_hard_labels(self) -> bool:
        return self.args.prediction_weight > 0 and self.args.soft_label_weight < 1

    def _forward(self, model: nn.Module, inputs: dict[str, Any]):
        extras = {"output_hidden_states": True} if self._uses_states else {}
        if self.features.reads_attention:
            extras["output_attentions"] = True
        return model(**inputs, **extras)

    def get_batch_samples(self, epoch_iterator, num_batches, device):
        """As in `Trainer`; counts over what a step averages its parts, in all its batches and processes."""
        batches, _ = super().get_batch_samples(epoch_iterator, num_batches, device)
        if not batches or not (self._uses_states or self._per_position):
            return batches, None
        counts = torch.stack([self._count(batch) for batch in batches]).sum(0, keepdim=True)
        return batches, self.accelerator.gather(counts).sum(0)

    def _count(self, batch: dict[str, Any]) -> torch.Tensor:
        """Over how many items the parts of a batch are means: embeddings, hidden states, predictions; 0 if unknown."""
        mask, positions = batch.get("attention_mask"), self._predicted(batch)
        # Made where they are used: a step waits for no device.
        features = predictions = torch.zeros(2, device=self.args.device)
        if self._uses_states and mask is not None:
            features = self.features.count(mask).to(features)
        if self._per_position and positions is not None:
            predictions = positions.sum().to(features).expand(1)
        return torch.cat([features, predictions[:1]])

    def _predicted(self, batch: dict[str, Any]) -> torch.Tensor | None:
        """The positions `(batch, length)` at which predictions are compared, where each position has one."""
        if batch.get("labels") is None:
            return batch.get("attention_mask")
        # Where there are labels position by position, the hard loss counts those as well.
        return label_mask(batch, (), None, self._label_offset)

    def get_train_dataloader(self):
        """As in `Trainer`; with `cache_teacher_outputs`, batches bring the teacher's outputs along."""
        if not self.args.cache_teacher_outputs:
            return super().get_train_dataloader()
        own = self.data_collator
        self._cached_teacher = CachedTeacher(self)
        self.data_collator = self._cached_teacher.prepare()
        try:
            return super().get_train_dataloader()
        finally:
            self.data_collator = own

    def compute_loss(self, model, inputs, return_outputs=False, num_items_in_batch=None):
        """The weighted sum of all parts while training, the student's own loss while evaluating."""
        if not model.training:
            return super().compute_loss(model, inputs, return_outputs=return_outputs)
        cached = inputs.pop(CACHED_OUTPUTS, None)
        outputs = self._forward(model, inputs)
        teacher_outputs = self._teacher_outputs(inputs) if cached is None else self._cached_teacher.outputs(cached)
        parts: dict[str, torch.Tensor] = {}
        weights: dict[str, float] = {}
        totals = None
        if num_items_in_batch is not None:
            # `Trainer` takes the mean over batches and processes.
            totals = num_items_in_batch / (self.current_gradient_accumulation_steps * self.accelerator.num_processes)
        self._add_prediction_parts(parts, weights, outputs, teacher_outputs, inputs, totals)
        self._add_feature_parts(parts, weights, outputs, teacher_outputs, inputs, totals)
        self.record_loss_parts(parts)
        loss = sum(weights[name] * part for name, part in parts.items())
        return (loss, outputs) if return_outputs else loss

    def _teacher_outputs(self, inputs: dict[str, Any]):
        """What the teacher says to a batch."""
        with torch.no_grad():
            return self._forward(self.teacher_model.eval(), inputs)

    def _add_prediction_parts(self, parts, weights, outputs, teacher_outputs, inputs, totals) -> None:
        args, share = self.args, 1.0
        logits = outputs.get("logits")
        mask = self._predicted(inputs) if logits is not None and logits.dim() > 2 else None
        if self._per_position and mask is not None and totals is not None:
            share = mask.sum() / totals[2].clamp(min=1e-9)
        if self._uses_soft_labels:
            parts["loss_soft"] = self.prediction_loss(logits, teacher_outputs["logits"], mask) * share
            weights["loss_soft"] = args.prediction_weight * args.soft_label_weight
        if self._uses_hard_labels:
            if outputs.get("loss") is None:
                raise ValueError(
                    "The student computed no loss, so the batch has no labels: give labels, or set "
                    "`soft_label_weight=1`."
                )
            hard = outputs["loss"].mean()
            if mask is not None:
                # Without a label a mean is NaN.
                hard = hard.where(mask.any(), 0.0)
            parts["loss_hard"] = hard * share
            weights["loss_hard"] = args.prediction_weight * (1 - args.soft_label_weight)

    def _add_feature_parts(self, parts, weights, outputs, teacher_outputs, inputs, totals) -> None:
        if not self._uses_states:
            return
        mask = inputs.get("attention_mask")
        totals = None if mask is None else totals
        for name, (part, weight) in self.features.losses(outputs, teacher_outputs, mask, totals).items():
            parts[f"loss_{name}"], weights[f"loss_{name}"] = part, weight
