"""Trainer that distils a large model into a small one."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

import torch
from torch import nn

from hf_mwp.compress.distillation.cached_teacher import CachedTeacher, random_state_kept
from hf_mwp.compress.distillation.compatibility import check_losses, check_only_predictions
from hf_mwp.compress.distillation.ensemble_teacher import TEACHER_INPUTS, members_of
from hf_mwp.compress.distillation.feature_projections import FeatureProjections
from hf_mwp.compress.distillation.features import Features, read_features
from hf_mwp.compress.distillation.live_teacher import LiveTeacher
from hf_mwp.compress.distillation.objectives.objective import Objective, TeacherRequest
from hf_mwp.compress.models.model_kind import kind_of
from hf_mwp.utils.main_process import shards_weights
from hf_mwp.utils.provenance import ancestry_of

from .argument_order import in_trainer_order
from .base_trainer import BaseTrainer
from .distillation_config import DistillationConfig, default_objectives
from .unknown_tokens import check_shared_tokens, sample_rows, warn_of_unknown_tokens


class DistillationTrainer(BaseTrainer):
    """
    Trainer that teaches a student the predictions, hidden states and embeddings of a frozen teacher.

    Teacher and student may be any models with the same inputs whose outputs have `logits` and `hidden_states`:
    solvers, classifiers of texts or tokens, masked and causal language models and encoder-decoder models, and those of
    Transformers for question answering, multiple choice and pretraining. For encoder-decoder models, decoder states
    are compared only if `decoder_layer_mapping` is set; [`Seq2SeqDistillationTrainer`] compares both stacks and
    generates texts in evaluations. For solvers, data and evaluation are as in [`SolverTrainer`]. Rows of causal
    language models may be texts, prompts with completions, or messages ([`tokenize_causal_rows`]); evaluations report
    the perplexity.

    The loss is the weighted sum of the parts of the objectives. The unweighted parts are logged: with the objectives
    of [`DistillationConfig`], `loss_soft`, `loss_hard`, `loss_hidden_{student layer}` and `loss_embedding`. The
    evaluation loss is the student's own loss or, if no row has labels, the training loss.

    If widths differ, linear maps are trained with the student ([`FeatureProjections`]). Checkpoints store these maps
    in a separate file; `save_model` saves only the student. Before training, both models run on a few rows, to check
    that layers, widths and classes fit and that the loss is finite.

    Args:
        model (`nn.Module`): The student. Arguments by position are in this order, or in the order of `Trainer`
            (`model, args, data_collator, ...`) with `teacher_model` as a keyword argument.
        teacher_model (`nn.Module` or `Sequence[nn.Module]`):
            The teacher, which is frozen and moved to the device. The predictions of several teachers are averaged (see
            [`~distillation.EnsembleTeacher`]); hidden states and attention come from the first teacher.
        args ([`DistillationConfig`], *optional*): Arguments.
        data_collator, train_dataset, eval_dataset, processing_class, callbacks, kwargs:
            As in [`SolverTrainer`] for solvers, as in `Trainer` otherwise. The default collator of encoder-decoder
            models is `DataCollatorForSeq2Seq`.
        teacher_processing_class ([`MwpProcessor`] or tokenizer, or a list, *optional*):
            Processor or tokenizer of the teacher, if it differs from `processing_class`. For several teachers, pass
            one for all or a list with one for each (`None`: `processing_class`). It must tokenize text like the
            student's; solver teachers may differ (prediction losses only).
        objectives (`Sequence[Objective]`, *optional*):
            Objectives to use instead of the losses in `args`, see [`~distillation.objectives.Objective`].

    Raises:
        TypeError: `model` or `teacher_model` is missing or no model, or `args` is another config.
        ValueError: The models do not fit (symbols, vocabulary, classes, shared weights, layers), or outputs are NaN or
            infinite.

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
    _unpooled: Sequence[Any] = ()

    @in_trainer_order
    def __init__(
        self,
        model: nn.Module | None = None,
        teacher_model: nn.Module | Sequence[nn.Module] | None = None,
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
        args = self._checked(model, args, kwargs)
        self.objectives = default_objectives(args) if objectives is None else list(objectives)
        if not self.objectives:
            raise ValueError("All weights of the loss are 0. Set at least one above 0.")
        teacher = LiveTeacher(teacher_model, processing_class, teacher_processing_class)
        if 0 in teacher.own_processors:
            check_only_predictions(self.objectives)
        teacher.check_student(model)
        super().__init__(model, args, data_collator, train_dataset, eval_dataset, processing_class, **kwargs)
        self.teacher_source: LiveTeacher | CachedTeacher = teacher
        self.projections = FeatureProjections({})
        if self._notes_texts:
            for member in members_of(teacher.model):
                self._ancestry |= ancestry_of(member)
        # By default, Accelerate leaves models where they are with FSDP, which does not wrap the teacher.
        teacher.model = self.accelerator.prepare_model(teacher.model, device_placement=True, evaluation_mode=True)
        # Only the student may count as prepared: `Trainer` checks this when it evaluates before training.
        self.accelerator.free_memory()
        self.teacher_model.requires_grad_(False).eval()
        # Inputs that the teacher reads and the student does not, such as `token_type_ids` of BERT for a DistilBERT.
        self._only_teacher = {TEACHER_INPUTS}
        if self.train_dataset is not None:
            self.train_dataset, columns = teacher.add_columns(self.train_dataset)
            self._warn_of_tokens_unknown_to(teacher)
            if teacher.num_shared_tokens is not None:
                check_shared_tokens(sample_rows(self.train_dataset), teacher.num_shared_tokens, processing_class)
            if args.remove_unused_columns and self.rules.columns is None:
                self._only_teacher |= teacher.input_names - {*self._signature_columns}
            self._signature_columns += [*columns, *sorted(self._only_teacher)]
            self._plan(teacher)

    def _warn_of_tokens_unknown_to(self, teacher: LiveTeacher) -> None:
        """Log a warning if teachers with tokenizers of their own cannot read the training texts."""
        for number, processor in teacher.own_processors.items():
            sample = []
            for _, row in sample_rows(self.train_dataset):
                sample.append((row[TEACHER_INPUTS][str(number)]["input_ids"], row["text"]))
            warn_of_unknown_tokens(sample, processor, f"the tokenizer of teacher {number + 1}")

    @property
    def teacher_model(self) -> nn.Module:
        """The teacher, or an [`~distillation.EnsembleTeacher`] of several teachers."""
        return self.teacher_source.model

    @torch.no_grad()
    def _plan(self, teacher: LiveTeacher) -> None:
        """Run both models on a few examples, and let each objective choose the outputs that it compares."""
        self._check_objectives()
        self._options = kind_of(self._own_model).forward_options(self._own_model)
        for objective in self.objectives:
            self._options |= objective.options
        was_training = self.model.training
        if next(self.model.parameters()).device.type != self.args.device.type:
            # `Trainer` moves the student later with FSDP, DeepSpeed or `bf16_full_eval`.
            self._move_model_to_device(self.model, self.args.device)
        self.model.eval()
        with torch.random.fork_rng(devices=[]):
            size = max(objective.num_examples for objective in self.objectives)
            batch = next(self.batches_in_order(size, teacher))
            self._set_up_objectives(teacher, batch)
        self._set_up_projections()
        teacher.request = TeacherRequest.of(self.objectives)
        with torch.random.fork_rng(devices=[]):
            self._check_first_losses(teacher, batch)
        self.model.train(was_training)
        if self.args.cache_teacher_outputs and teacher.request.features:
            self.teacher_source = self._cached(teacher)

    def _check_objectives(self) -> None:
        """Raise `ValueError` if an objective needs outputs that cannot be cached, or hooks that are not called."""
        args = self.args
        not_cacheable = [objective.name for objective in self.objectives if not objective.cacheable]
        if args.cache_teacher_outputs and not_cacheable:
            raise ValueError(
                f"{', '.join(not_cacheable)} need attention matrices or states of `decoder_mask='shifted'`, which "
                "cannot be cached. Set `cache_teacher_outputs=False`, or choose another `hidden_loss`."
            )
        with_hooks = [objective.name for objective in self.objectives if objective.reads_modules]
        checkpointing = args.gradient_checkpointing_kwargs or {}
        is_reentrant = args.gradient_checkpointing and checkpointing.get("use_reentrant")
        if with_hooks and (args.torch_compile or is_reentrant):
            raise ValueError(
                f"{', '.join(with_hooks)} need hooks, which compiled models and reentrant checkpointing skip. Set "
                "`torch_compile=False` and `use_reentrant=False`, or choose another `hidden_loss`."
            )

    def _set_up_objectives(self, teacher: LiveTeacher, batch: Mapping[str, Any]) -> None:
        """Show each objective all outputs of both models for a batch."""
        inputs = self._student_inputs(batch)
        student_features = read_features(self.model, inputs, self._options)
        student_features.model = self._own_model
        teacher_model = members_of(self.accelerator.unwrap_model(self.teacher_model))[0]
        teacher_inputs = kind_of(teacher_model).teacher_inputs(teacher_model, batch)
        teacher_features = read_features(self.teacher_model, teacher_inputs, self._options)
        teacher_features.model = teacher_model
        teacher_features.num_shared_tokens = teacher.num_shared_tokens
        if not {*self.label_names} & {*inputs}:
            self.can_return_loss = True
        for objective in self.objectives:
            objective.setup(student_features, teacher_features, inputs)

    def _set_up_projections(self) -> None:
        """Create the linear maps that the objectives need, and note the student's outputs that they read."""
        loss_names: list[str] = []
        widths: dict[str, Any] = {}
        self._reads: list[str] = []
        for objective in self.objectives:
            loss_names += objective.parts
            widths |= objective.projections
            self._reads += objective.student_reads
        if len({*loss_names}) < len(loss_names):
            raise ValueError(f"Names of loss parts are not unique: {loss_names}. Set `name` of each objective.")
        self.projections = FeatureProjections(widths, self.args.shared_projection)
        self.projections.move_to(self._own_model)

    def _check_first_losses(self, teacher: LiveTeacher, batch: Mapping[str, Any]) -> None:
        """Raise `ValueError` if a loss of a batch is not finite, now with the hooks that read the chosen outputs."""
        inputs = self._student_inputs(batch)
        teacher_features = teacher.outputs(batch)
        student_features = read_features(self.model, inputs, self._options, self._reads)
        student_features.projected = self.projections.project(student_features.output)
        losses = self._losses(student_features, teacher_features, inputs)
        check_losses(losses, student_features, teacher_features)

    def _cached(self, teacher: LiveTeacher) -> CachedTeacher:
        """Return the source that stores the teacher's outputs on disk and reads them."""
        if teacher.request.top_classes is not None:
            teacher.request.top_classes.check()
        return CachedTeacher(
            teacher,
            Path(self.args.teacher_cache_dir or Path(self.args.output_dir) / "teacher_cache"),
            trim=self._get_collator_with_removed_columns(list),
            to_device=self._prepare_inputs,
            context=self.compute_loss_context_manager,
            length=lambda row: self._length(row) or 0,
            batch_size=self.args.per_device_eval_batch_size,
            processing=self.processing_class,
            mixed_precision=self.accelerator.mixed_precision,
            dtype=next(self.model.parameters()).dtype,
            progress=self._report_teacher_cache,
        )

    def _student_inputs(self, batch: Mapping[str, Any]) -> dict[str, Any]:
        """Return the entries of a batch without those that only the teacher reads."""
        return {name: value for name, value in batch.items() if name not in self._only_teacher}

    def batches_in_order(self, size: int, teacher: LiveTeacher | None = None) -> Iterator[dict[str, Any]]:
        """Yield the model inputs of the training rows in order, on the device, the same in each process."""
        collator = self.data_collator
        if teacher is not None:
            collator = teacher.prepare(self.train_dataset, collator)
        collate = self._get_collator_with_removed_columns(collator)
        rows = iter(self.train_dataset)
        while batch := list(islice(rows, size)):
            yield self._prepare_inputs(collate(batch))

    def create_optimizer(self, model=None):
        """Create the optimizer, and attach the projections to the student."""
        # A module that is compiled already accepts no further submodules.
        self.projections.attach(self.accelerator.unwrap_model(self.model, keep_torch_compile=False))
        optimizer = super().create_optimizer(model)
        missing = {id(parameter) for parameter in self.projections.module.parameters()}
        for group in optimizer.param_groups:
            missing -= {id(parameter) for parameter in group["params"]}
        if missing:
            raise ValueError("`optimizers` lacks the projections between widths. Pass `optimizer_cls_and_kwargs`.")
        return optimizer

    def _own_rates(self):
        args = self.args
        rate = args.projection_learning_rate
        if rate is None:
            rate = args.learning_rate
        return [*super()._own_rates(), (self.projections.module, rate, args.weight_decay)]

    def train(self, resume_from_checkpoint=None, trial=None, ignore_keys_for_eval=None):
        """Train the student, and detach the projections afterwards, even after an error."""
        args = self.args
        try:
            result = super().train(resume_from_checkpoint, trial, ignore_keys_for_eval)
            checkpoint = self.state.best_model_checkpoint
            has_loaded = args.load_best_model_at_end and checkpoint is not None
            if has_loaded and not args.save_only_model and not shards_weights(args):
                self.projections.load(checkpoint)
            return result
        finally:
            self.projections.detach()

    def _save_additions(self, folder: Path) -> None:
        super()._save_additions(folder)
        # Weights that are split over processes are saved by Accelerate or DeepSpeed, with the student.
        if not self.args.save_only_model and not shards_weights(self.args):
            folder.mkdir(parents=True, exist_ok=True)
            self.projections.save(folder)

    def _load_additions(self, folder: str, model: nn.Module) -> None:
        super()._load_additions(folder, model)
        if not shards_weights(self.args):
            self.projections.load(folder)

    def _num_items(self, batch: dict[str, Any]) -> dict[str, torch.Tensor | int | None]:
        num_items: dict[str, torch.Tensor | int | None] = {}
        for objective in self.objectives:
            num_items |= objective.num_items(batch)
        return num_items

    def get_batch_samples(self, epoch_iterator, num_batches, device):
        """Return the batches of a step, and keep them for objectives with `pool_statistics`."""
        self._unpooled, num_items = super().get_batch_samples(epoch_iterator, num_batches, device)
        return self._unpooled, num_items

    def training_step(self, *args, **kwargs):
        """Train on a batch. Before the first batch of a step, the statistics of all its batches are pooled: here, the
        random state of a resumed training is restored."""
        pooling = [objective for objective in self.objectives if getattr(objective, "pool_statistics", False)]
        if pooling and self._unpooled:
            self._pool_statistics(pooling, self._unpooled)
        self._unpooled = ()
        return super().training_step(*args, **kwargs)

    @torch.no_grad()
    def _pool_statistics(self, objectives: Sequence[Any], batches: Sequence[Any]) -> None:
        sums_of_objectives: list[dict[str, list[torch.Tensor]]] = [{} for _ in objectives]
        num_batches = len(batches) * self.accelerator.num_processes
        if num_batches == 1:
            # The loss computes the statistics of a single batch itself.
            batches = ()
        self.model.train()
        # Restore the random state, so that dropout masks are the same here and in the training step.
        with random_state_kept():
            for batch in batches:
                inputs = self._prepare_inputs(batch)
                teacher = self.teacher_source.outputs(inputs)
                with self.compute_loss_context_manager():
                    student = read_features(self.model, self._student_inputs(inputs), self._options, self._reads)
                for objective, sums in zip(objectives, sums_of_objectives, strict=True):
                    for name, statistics in objective.statistics(student, teacher, inputs).items():
                        if name in sums:
                            statistics = list(map(torch.add, sums[name], statistics))
                        sums[name] = statistics
        for objective, sums in zip(objectives, sums_of_objectives, strict=True):
            for name, statistics in sums.items():
                sums[name] = [self.accelerator.reduce(tensor, reduction="sum") for tensor in statistics]
            objective.pool(sums, num_batches)

    def get_train_dataloader(self):
        """Return the loader of training rows. With `cache_teacher_outputs`, batches contain the teacher's outputs."""
        with self._collating(self.teacher_source.prepare(self.train_dataset, self.data_collator), training=True):
            return super().get_train_dataloader()

    def _report_teacher_cache(self, done: int, total: int) -> None:
        """Call `on_teacher_cache` of all callbacks that define it."""
        for callback in self.callback_handler.callbacks:
            if hasattr(callback, "on_teacher_cache"):
                callback.on_teacher_cache(self.args, self.state, self.control, done=done, total=total)

    def _losses(self, student: Features, teacher: Features, inputs: dict[str, Any]) -> dict[str, torch.Tensor]:
        """Return the unweighted parts of the loss by name."""
        losses: dict[str, torch.Tensor] = {}
        for objective in self.objectives:
            losses |= objective.losses(student, teacher, inputs)
        return losses

    def compute_loss(self, model, inputs, return_outputs=False, num_items_in_batch=None):
        """Return the weighted sum of all parts, or in evaluations with labels the student's own loss."""
        if not model.training and self.label_names:
            return super().compute_loss(model, inputs, return_outputs=return_outputs)
        teacher = self.teacher_source.outputs(inputs)
        student = read_features(model, self._student_inputs(inputs), self._options, self._reads)
        read = self.projections.read if model.training else self.projections.project
        student.projected = read(student.output)
        weights: dict[str, float] = {}
        for objective in self.objectives:
            weights |= objective.parts
        losses = self._losses(student, teacher, inputs)
        losses = self._weight_by_items(losses, inputs, num_items_in_batch)
        if model.training:
            self.record_loss_parts({f"loss_{name}": loss for name, loss in losses.items()})
        loss = sum(weights[name] * loss for name, loss in losses.items())
        # Without the hidden states and attentions that the objectives read, as in other evaluations.
        output = {name: value for name, value in student.output.items() if isinstance(value, torch.Tensor)}
        return (loss, output) if return_outputs else loss

    def prediction_step(self, model, inputs, prediction_loss_only, ignore_keys=None):
        """For rows without labels, return the training loss if the training rows have no labels either."""
        names = self.label_names
        if {*names} & {*inputs} or not self.can_return_loss:
            return super().prediction_step(model, self._student_inputs(inputs), prediction_loss_only, ignore_keys)
        # `Trainer` computes a loss for rows without labels only if it expects no labels.
        self.label_names = []
        try:
            loss, logits, _ = super().prediction_step(model, inputs, prediction_loss_only, ignore_keys)
        finally:
            self.label_names = names
        return loss, logits, None
