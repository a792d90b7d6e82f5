"""What the trainers for solvers share."""

from __future__ import annotations

from functools import cached_property, reduce
from operator import or_
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn
from transformers import Trainer
from transformers.trainer_utils import PREFIX_CHECKPOINT_DIR, EvalLoopOutput, has_length

from ..data.batches.mwp_collator import MwpCollator
from ..data.batches.mwp_processor import MwpProcessor
from ..data.training_lineage import ancestry_of, texts_of_rows, write_training_texts
from ..data.training_texts import TrainingTexts
from ..files import write_json_lines
from ..solving.beams import solve_batch
from ..solving.solver_prediction import figure_names, read_predictions, summarise
from .base_config import BaseConfig
from .checkpoints import forget_state, full_disk_named, last_complete_checkpoint
from .early_stopping import ResumableEarlyStopping
from .length_grouped_sampler import LengthGroupedSampler
from .solver_dataset import (
    LABELLED_ROWS,
    ROW_INDEX,
    EvaluationCollator,
    check_not_empty,
    prepare_evaluation_rows,
    prepare_training_rows,
)


SOLVER_COLUMNS = ("input_ids", "number_positions", "number_groups", "labels", ROW_INDEX)


class BaseTrainer(Trainer):
    """
    A `Trainer` that knows solvers of math word problems; with any other model it is the plain `Trainer` but for its
    sampler, its early stopping and its logging of loss parts.

    With a solver (a model with a method `solve`, such as [`MwpSolver`]) it

    - takes the rows of [`load_mwp_dataset`] as they are and encodes them with `processing_class`, an [`MwpProcessor`];
      the default collator is an [`MwpCollator`];
    - gives encoder and decoder their own learning rate and weight decay;
    - notes in the model, and in each folder that it writes, what the model was trained on ([`~data.TrainingTexts`]);
    - decodes while evaluating and reports `answer_accuracy`, `equation_accuracy`, `answer_accuracy_low`, `_medium` and
      `_high` (as far as the level occurs) and the other figures of [`metrics.accuracy_report`], beside the loss.
      `prediction_loss_only=True` leaves out the decoding. `compute_metrics`, if given, receives the tuple (sequences,
      log-probabilities, losses) as predictions and the numbers of their rows in the data set as labels.

    Args:
        model, args, data_collator, train_dataset, eval_dataset, processing_class, callbacks, kwargs:
            As in `Trainer`; `args` is a [`BaseConfig`], data sets may also be lists of rows (`dict`).
    """

    config_class = BaseConfig

    def __init__(
        self,
        model: nn.Module | None = None,
        args: BaseConfig | None = None,
        data_collator: Any = None,
        train_dataset: Any = None,
        eval_dataset: Any = None,
        processing_class: Any = None,
        *,
        callbacks: list | None = None,
        **kwargs,
    ) -> None:
        args = self.config_class(output_dir="trainer_output") if args is None else args
        if not isinstance(args, BaseConfig):
            name = self.config_class.__name__
            raise TypeError(
                f"`args` must be a `{name}`, got `{type(args).__name__}`: make a `{name}(output_dir=...)`, which "
                f"takes all arguments of `TrainingArguments` and those of `{type(self).__name__}`."
            )
        check_not_empty(train_dataset, eval_dataset)
        self.is_solver = isinstance(processing_class, MwpProcessor) if model is None else hasattr(model, "solve")
        self._check_models(model)
        if args.metric_for_best_model is None:
            args.metric_for_best_model = self._default_metric(args)
        if args.greater_is_better is None and args.metric_for_best_model is not None:
            args.greater_is_better = not args.metric_for_best_model.endswith("loss")
        if args.early_stopping_patience is not None:
            stopping = ResumableEarlyStopping(args.early_stopping_patience, args.early_stopping_threshold)
            callbacks = [*(callbacks or []), stopping]
        if self.is_solver:
            if args.batch_eval_metrics or not args.eval_do_concat_batches:
                raise ValueError(
                    "Solvers are evaluated on all problems at once: leave `batch_eval_metrics` and "
                    "`eval_do_concat_batches` at their defaults."
                )
            train_dataset, eval_dataset = self._prepare_datasets(train_dataset, eval_dataset, processing_class)
            collator = MwpCollator(processing_class) if data_collator is None else data_collator
            data_collator = EvaluationCollator(collator)
        super().__init__(
            model=model,
            args=args,
            data_collator=data_collator,
            train_dataset=train_dataset,
            eval_dataset=eval_dataset,
            processing_class=processing_class,
            callbacks=callbacks,
            **kwargs,
        )
        if self.is_solver:
            self._check_solver(self.model)
        self._check_metric()
        # Read now: a run may write over the folder that its model comes from.
        self._ancestry = reduce(or_, map(ancestry_of, self._ancestors())) if self._notes_texts else None
        self._loss_parts: dict[str, torch.Tensor] = {}
        self._num_loss_parts = 0
        self._evaluated: Any = None

    def _check_models(self, model: nn.Module | None) -> None:
        """For derived trainers: raises an error if they cannot train this model."""

    def _check_metric(self) -> None:
        """Raises `ValueError` if `metric_for_best_model` is none of the figures that an evaluation gives."""
        metric = self.args.metric_for_best_model
        if self.args.eval_strategy == "no" or metric is None:
            return
        known = self._evaluation_names()
        if known is not None and metric.removeprefix("eval_") not in known:
            raise ValueError(
                f"`metric_for_best_model`: evaluations give no {metric!r}, but {', '.join(sorted(known))}."
            )

    def _evaluation_names(self) -> set[str] | None:
        """The figures that an evaluation gives; `None` if only the evaluation knows."""
        if self.compute_metrics is not None or self.eval_dataset is None:
            return None
        parts = self.eval_dataset if isinstance(self.eval_dataset, dict) else {"": self.eval_dataset}
        names = {prefix: self._figures_of(rows) for prefix, rows in parts.items()}
        return {f"{prefix}_{name}" if prefix else name for prefix, each in names.items() for name in each}

    def _figures_of(self, rows: Any) -> set[str]:
        """The figures that an evaluation of these rows gives."""
        if not self._decodes:
            return {"loss"}
        return {"loss"} | figure_names(list(rows), self.processing_class, self.args.answer_rule)

    def _default_metric(self, args: BaseConfig) -> str | None:
        if self.is_solver and not args.prediction_loss_only:
            return "answer_accuracy"
        needs_one = args.load_best_model_at_end or args.early_stopping_patience is not None
        return "loss" if needs_one or args.save_strategy == "best" else None

    def train(self, resume_from_checkpoint=None, trial=None, ignore_keys_for_eval=None):
        """As in `Trainer`; `resume_from_checkpoint=True` passes over a checkpoint that was not written to its end."""
        if resume_from_checkpoint is True:
            resume_from_checkpoint = last_complete_checkpoint(self.args.output_dir)
            if resume_from_checkpoint is None:
                raise ValueError(f"There is no complete checkpoint in {self.args.output_dir} to resume from.")
        try:
            return super().train(resume_from_checkpoint, trial, ignore_keys_for_eval)
        finally:
            self._note_training_texts()

    def _save_checkpoint(self, model, trial):
        # What is written over, as by a run that was begun again at an older checkpoint, is not complete meanwhile.
        folder = Path(self._get_output_dir(trial=trial)) / f"{PREFIX_CHECKPOINT_DIR}-{self.state.global_step}"
        if self.args.should_save:
            forget_state(folder)
        with full_disk_named(folder, self.args.output_dir):
            super()._save_checkpoint(model, trial)

    def save_model(self, output_dir=None, _internal_call=False):
        """As in `Trainer`; a full disk is named."""
        with full_disk_named(output_dir or self.args.output_dir, self.args.output_dir):
            super().save_model(output_dir, _internal_call)

    def init_hf_repo(self, *args, **kwargs):
        """As in `Trainer`; what is wrong is told before the training."""
        try:
            super().init_hf_repo(*args, **kwargs)
        except Exception as error:
            raise ConnectionError(
                f"`push_to_hub`: the repository on the Hub cannot be made ({error}): log in with `hf auth login`, or "
                "leave `push_to_hub` away."
            ) from error

    def _run_epoch(self, *args, **kwargs):
        # A run that had stopped early takes no further step.
        if not self.control.should_training_stop:
            super()._run_epoch(*args, **kwargs)

    # Data

    def _prepare_datasets(self, train_dataset, eval_dataset, processor):
        if not isinstance(processor, MwpProcessor):
            raise TypeError(
                f"A solver needs an `MwpProcessor` as `processing_class`, got `{type(processor).__name__}`: load it "
                "with `MwpProcessor.from_pretrained(folder)` or make one with `MwpProcessor.build(tokenizer, "
                "problems)`."
            )
        if train_dataset is not None:
            train_dataset = prepare_training_rows(train_dataset, processor)
        if isinstance(eval_dataset, dict):
            prepared = {name: prepare_evaluation_rows(rows, processor) for name, rows in eval_dataset.items()}
            return train_dataset, prepared
        if eval_dataset is not None:
            eval_dataset = prepare_evaluation_rows(eval_dataset, processor)
        return train_dataset, eval_dataset

    def _check_solver(self, model: nn.Module) -> None:
        """Raises `ValueError` unless model and processor belong together."""
        self.processing_class.check_model(model)

    def _set_signature_columns_if_needed(self) -> None:
        if self._signature_columns is None and self.is_solver:
            # The length is for the sampler, the row number for the evaluation: the model takes neither.
            self._signature_columns = [*SOLVER_COLUMNS, self.args.length_column_name]
        super()._set_signature_columns_if_needed()

    def _get_train_sampler(self, train_dataset=None):
        dataset = self.train_dataset if train_dataset is None else train_dataset
        if self.args.train_sampling_strategy != "group_by_length" or not has_length(dataset):
            return super()._get_train_sampler(train_dataset)
        column = self.args.length_column_name
        if column in (getattr(dataset, "column_names", None) or ()):
            lengths = dataset[column]
        else:
            # The processor's name of the main input is what `Trainer` looks at as well.
            name = getattr(self.processing_class, "model_input_names", ["input_ids"])[0]
            if not isinstance(dataset[0], dict) or name not in dataset[0]:
                raise ValueError(
                    f"Examples cannot be grouped by length: they have no {name!r}. Set "
                    '`train_sampling_strategy="random"`, or add a column with their lengths '
                    f"(`length_column_name`, {column!r})."
                )
            lengths = [len(example[name]) for example in dataset]
        args = self.args
        return LengthGroupedSampler(
            lengths,
            batch_size=args.train_batch_size * args.gradient_accumulation_steps * args.world_size,
            seed=args.seed if args.data_seed is None else args.data_seed,
            first_epoch=lambda: int(self.state.epoch or 0),
        )

    # What was trained on

    @property
    def _notes_texts(self) -> bool:
        """Whether the model's folder tells what it was trained on, see [`~data.TrainingTexts`]."""
        return self.is_solver

    def _ancestors(self) -> list[nn.Module]:
        """Models whose training texts are those of the trained model as well."""
        return [] if self.model is None else [self.accelerator.unwrap_model(self.model)]

    @cached_property
    def _own_texts(self) -> TrainingTexts:
        return TrainingTexts() if self.train_dataset is None else texts_of_rows(self.train_dataset)

    def _note_training_texts(self) -> None:
        """Notes in the model what it has been trained on, once it has been trained."""
        if self._notes_texts and self.state.global_step:
            model = self.accelerator.unwrap_model(self.model)
            model.training_texts = ancestry_of(model) | self._ancestry | self._own_texts

    def _save(self, output_dir=None, state_dict=None) -> None:
        self._note_training_texts()
        super()._save(output_dir, state_dict)
        if self._notes_texts and self.args.should_save:
            write_training_texts(self.accelerator.unwrap_model(self.model), output_dir or self.args.output_dir)

    # Optimiser

    def create_optimizer(self, model=None):
        """As in `Trainer`, with groups of their own for the modules of `_own_rates`."""
        is_new = self.optimizer is None
        optimizer = super().create_optimizer(model)
        if is_new:
            # The parent makes two groups; in the second is what must not decay (biases, norms).
            for number, group in enumerate(list(optimizer.param_groups)):
                for module, rate, decay in self._own_rates():
                    own = {id(parameter) for parameter in module.parameters()}
                    parameters = [parameter for parameter in group["params"] if id(parameter) in own]
                    group["params"] = [parameter for parameter in group["params"] if id(parameter) not in own]
                    decay = 0.0 if number else decay
                    if parameters:
                        optimizer.add_param_group({**group, "params": parameters, "lr": rate, "weight_decay": decay})
            optimizer.param_groups[:] = [group for group in optimizer.param_groups if group["params"]]
        return optimizer

    def _own_rates(self) -> list[tuple[nn.Module, float, float]]:
        """Modules with a learning rate and a weight decay of their own."""
        if not self.is_solver:
            return []
        args = self.args
        rate = args.learning_rate if args.decoder_learning_rate is None else args.decoder_learning_rate
        decay = args.weight_decay if args.decoder_weight_decay is None else args.decoder_weight_decay
        return [(self.model.decoder, rate, decay)]

    # Logging

    def record_loss_parts(self, parts: dict[str, torch.Tensor]) -> None:
        """Notes parts of a training loss; `log` reports their means since its last report. No device is waited for."""
        for name, value in parts.items():
            value = value.detach().float()
            self._loss_parts[name] = self._loss_parts[name] + value if name in self._loss_parts else value
        self._num_loss_parts += 1

    def log(self, logs: dict[str, float], start_time: float | None = None) -> None:
        """Adds the means of the recorded parts, over all processes, to the logs of training steps."""
        if "loss" in logs and self._loss_parts:
            means = torch.stack(list(self._loss_parts.values())) / self._num_loss_parts
            means = self.accelerator.reduce(means, reduction="mean").tolist()
            logs.update(zip(self._loss_parts, means, strict=True))
            self._loss_parts, self._num_loss_parts = {}, 0
        super().log(logs, start_time)

    # Evaluation

    @property
    def _decodes(self) -> bool:
        return self.is_solver and not self.args.prediction_loss_only

    def get_eval_dataloader(self, eval_dataset=None):
        """As in `Trainer`; a solver's rows may be raw."""
        if self.is_solver:
            if eval_dataset is not None and not isinstance(eval_dataset, str):
                eval_dataset = prepare_evaluation_rows(eval_dataset, self.processing_class)
            self._evaluated = self.eval_dataset if eval_dataset is None else eval_dataset
            if isinstance(eval_dataset, str):
                self._evaluated = self.eval_dataset[eval_dataset]
        return super().get_eval_dataloader(eval_dataset)

    def get_test_dataloader(self, test_dataset):
        """As in `Trainer`; a solver's rows may be raw."""
        if self.is_solver:
            test_dataset = self._evaluated = prepare_evaluation_rows(test_dataset, self.processing_class)
        return super().get_test_dataloader(test_dataset)

    def prediction_step(self, model, inputs, prediction_loss_only, ignore_keys=None):
        """For solvers: the loss of the labelled problems of the batch, and the best tree of each problem."""
        if not self.is_solver:
            return super().prediction_step(model, inputs, prediction_loss_only, ignore_keys)
        inputs = self._prepare_inputs(inputs)
        rows, labelled = inputs.pop(ROW_INDEX), inputs.pop(LABELLED_ROWS, None)
        labels = inputs.get("labels")
        # A number and not `None` without labels: on several processes all must have something to gather.
        loss = torch.full((), float("nan"), device=rows.device)
        with torch.no_grad(), self.compute_loss_context_manager():
            if labels is not None:
                part = inputs
                if labelled is not None:
                    part = {k: v if k == "labels" else v.index_select(0, labelled) for k, v in inputs.items()}
                loss = self.compute_loss(model, part).detach().mean().float()
        if not self._decodes:
            return loss, None, None
        row_losses = loss.new_full(rows.shape, float("nan"))
        row_losses[slice(None) if labelled is None else labelled] = loss
        with self.accelerator.autocast():
            solved = solve_batch(
                self.accelerator.unwrap_model(model),
                inputs,
                num_beams=self.args.num_beams,
                max_decode_length=self.args.max_decode_length,
            )
        # Copies, because tensors of inference mode cannot be gathered in place.
        sequences, scores = solved.sequences[:, 0].clone(), solved.scores[:, 0].float().clone()
        return loss, (sequences, scores, row_losses), rows

    def evaluation_loop(
        self, dataloader, description, prediction_loss_only=None, ignore_keys=None, metric_key_prefix="eval"
    ) -> EvalLoopOutput:
        """For solvers also decodes, checks answers and adds the accuracies to the metrics."""
        if not self._decodes:
            return super().evaluation_loop(
                dataloader, description, prediction_loss_only, ignore_keys, metric_key_prefix
            )
        evaluated = self._evaluated
        output = super().evaluation_loop(dataloader, description, False, ignore_keys, metric_key_prefix)
        # In the data set's order; what several processes evaluated twice to fill their last batch counts once.
        rows, first = np.unique(output.label_ids, return_index=True)
        sequences, scores, losses = (values[first] for values in output.predictions)
        predictions = read_predictions(
            list(evaluated), sequences, scores, self.processing_class, self.args.answer_rule
        )
        metrics = summarise(predictions)
        finite = losses[np.isfinite(losses)]
        if len(finite):
            metrics["loss"] = float(finite.mean())
        else:
            output.metrics.pop(f"{metric_key_prefix}_loss", None)
        output.metrics.update({f"{metric_key_prefix}_{name}": value for name, value in metrics.items()})
        if self.args.write_predictions and self.is_world_process_zero():
            path = Path(self.args.output_dir) / f"predictions_{metric_key_prefix}.jsonl"
            write_json_lines(path, (prediction.to_dict() for prediction in predictions))
        return output._replace(predictions=(sequences, scores), label_ids=rows, num_samples=len(predictions))
