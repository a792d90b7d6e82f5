"""Base class of all trainers."""

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import torch
from torch import nn
from transformers import Trainer
from transformers.trainer_utils import PREFIX_CHECKPOINT_DIR, EvalLoopOutput, has_length
from transformers.utils import can_return_loss, find_labels

from hf_mwp.compress.models.lora import has_lora, load_adapters, merged_weights, save_adapters
from hf_mwp.compress.models.model_kind import input_names, is_unwrapped, kind_of, unwrapped
from hf_mwp.utils.checkpoints import announce_files, invalidate_checkpoint, last_complete_checkpoint
from hf_mwp.utils.files import writing_weights
from hf_mwp.utils.main_process import ranks_of_folder, shards_weights
from hf_mwp.utils.provenance import TrainingRecord, ancestry_of, record_class, write_training_texts

from .base_config import BaseConfig
from .checkpoint_weights import LoadBestWeights, ignoring_unsaved_weights, load_renamed_weights
from .data_loading import DataLoading
from .early_stopping import ResumableEarlyStopping
from .evaluation_loss import EvaluationLoss
from .loss_parts import LossParts
from .publishing import Publishing
from .unknown_tokens import sample_rows, warn_of_unknown_tokens


class BaseTrainer(Publishing, DataLoading, LossParts, Trainer):
    """`Trainer` with exact resuming (sampler, early stopping, checkpoints), separate learning rates for parts of the
    model, and the rules of the kind of model ([`TrainingRules`]). The model and each saved folder record the texts
    that the model was trained on ([`~data.TrainingTexts`])."""

    config_class = BaseConfig

    def __init__(
        self,
        model: nn.Module | None = None,
        args: BaseConfig | None = None,
        data_collator: Any = None,
        train_dataset: Any = None,
        eval_dataset: Any = None,
        processing_class: Any = None,
        **kwargs,
    ) -> None:
        args = self._checked(model, args, kwargs)
        args.check_hub_strategy()
        _check_not_empty(train_dataset, eval_dataset)
        training_rules_class = kind_of(model).training_rules_class()
        self.rules = training_rules_class(unwrapped(model), args, processing_class)
        if train_dataset is not None:
            train_dataset = self.rules.training_rows(train_dataset)
            warn_of_unknown_tokens(self._sample_texts(train_dataset), processing_class)
        if isinstance(eval_dataset, dict):
            eval_dataset = {split: self.rules.evaluation_rows(rows) for split, rows in eval_dataset.items()}
        elif eval_dataset is not None:
            eval_dataset = self.rules.evaluation_rows(eval_dataset)
        self._evaluated = None
        self._evaluation_loss = EvaluationLoss()
        if data_collator is None:
            data_collator = self.rules.data_collator()
        follows_metric = args.lr_scheduler_type in ("reduce_lr_on_plateau", "greedy")
        stops_early = args.early_stopping_patience is not None
        uses = (follows_metric, stops_early, args.load_best_model_at_end, args.save_strategy == "best")
        if args.metric_for_best_model is None and any(uses):
            args.metric_for_best_model = self._default_metric()
        if args.greater_is_better is None and args.metric_for_best_model is not None:
            args.greater_is_better = not args.metric_for_best_model.endswith("loss")
        if follows_metric:
            mode = "max" if args.greater_is_better else "min"
            args.lr_scheduler_kwargs = {"mode": mode} | (args.lr_scheduler_kwargs or {})
        # Other callbacks may change the weights after training, so the best weights are loaded before.
        callbacks = [LoadBestWeights(), *(kwargs.get("callbacks") or [])]
        if stops_early:
            callbacks.append(ResumableEarlyStopping(args.early_stopping_patience, args.early_stopping_threshold))
        kwargs["callbacks"] = callbacks
        super().__init__(model, args, data_collator, train_dataset, eval_dataset, processing_class, **kwargs)
        # With `**kwargs` in `forward`, `Trainer` expects losses divided by `num_items_in_batch`; ours are batch means.
        self.model_accepts_loss_kwargs = False
        if args.label_names is None and not self.label_names:
            # `Trainer` looks at the arguments of a wrapper only.
            inner = type(unwrapped(model))
            self.label_names = [name for name in find_labels(inner) if name in input_names(model)]
            self.can_return_loss = can_return_loss(inner)
        self._signature_columns = self._input_columns()
        if args.eval_strategy != "no":
            self.check_metric()
        # Read now: a run may overwrite the folder from which its model was loaded.
        self._ancestry = ancestry_of(self._own_model) if self._notes_texts else record_class()()
        self._forget_losses()

    @classmethod
    def _checked(cls, model: Any, args: BaseConfig | None, kwargs: Mapping[str, Any]) -> BaseConfig:
        """Return `args` or defaults. Raises `TypeError` for other configs or if `model` is no model, `ValueError` for
        unsupported `kwargs`."""
        if kwargs.get("model_init") is not None:
            raise ValueError("`model_init` is not supported. Pass the model itself (`model=model_init()`).")
        if kwargs.get("compute_loss_func") is not None:
            raise ValueError("`compute_loss_func` is not supported. Override `compute_loss`.")
        if isinstance(model, str | Path):
            raise TypeError(
                f"`model` must be a model, got {str(model)!r}. Load it first, for example with "
                "`AutoModelForSequenceClassification.from_pretrained`."
            )
        if not isinstance(model, nn.Module):
            raise TypeError(f"`model` must be a model, got `{type(model).__name__}`. Pass the model to train.")
        if not isinstance(args, cls.config_class | None):
            name = cls.config_class.__name__
            raise TypeError(f"`args` must be a `{name}`, got `{type(args).__name__}`. Pass `{name}(output_dir=...)`.")
        return cls.config_class(output_dir="trainer_output") if args is None else args

    def _sample_texts(self, train_dataset: Any) -> Iterator[tuple[Sequence[int], str | None]]:
        """Yield the token ids of some training rows and, if the rows have them, the texts."""
        for _, row in sample_rows(train_dataset):
            text = row.get("text")
            yield row["input_ids"], text if isinstance(text, str) else None

    def _default_metric(self) -> str:
        """Return the metric that chooses checkpoints if `metric_for_best_model` is `None`."""
        return "loss"

    def check_metric(self) -> None:
        """Raise `ValueError` if it is certain that evaluations will not report `metric_for_best_model`."""
        metric = self.args.metric_for_best_model
        if metric is None or self.eval_dataset is None:
            return
        datasets = {"": self.eval_dataset}
        if isinstance(self.eval_dataset, dict):
            # Metrics of several datasets begin with their names.
            datasets = {f"{name}_": rows for name, rows in self.eval_dataset.items()}
        reported: set[str] = set()
        for prefix, rows in datasets.items():
            names = self._metric_names(rows)
            if names is None:
                return
            reported |= {prefix + name for name in names}
        if metric.removeprefix("eval_") not in reported:
            choices = ", ".join(sorted(reported))
            raise ValueError(
                f"`metric_for_best_model`: evaluations do not report {metric!r}. Choose one of {choices}."
            )

    def _metric_names(self, rows: Any) -> set[str] | None:
        """Return the names of the metrics of evaluation rows, or `None` if they are not known beforehand."""
        return self.rules.metric_names(rows) if self.compute_metrics is None else None

    def train(self, resume_from_checkpoint=None, trial=None, ignore_keys_for_eval=None):
        """Train the model. `resume_from_checkpoint=True` ignores incompletely written checkpoints."""
        self.args.check_hub_strategy()
        if resume_from_checkpoint is True:
            resume_from_checkpoint = last_complete_checkpoint(self.args.output_dir)
            if resume_from_checkpoint is None:
                raise ValueError(f"There is no complete checkpoint in {self.args.output_dir} to resume from.")
        if has_lora(self._own_model) and shards_weights(self.args):
            raise ValueError("LoRA adapters cannot be trained with FSDP or DeepSpeed's ZeRO-3. Use DDP.")
        if resume_from_checkpoint and self._notes_texts:
            earlier = record_class().load(resume_from_checkpoint)
            if earlier is not None and not self._all_texts().includes(earlier):
                raise ValueError(f"{resume_from_checkpoint} was trained on other texts. Resume with the same data.")
        self._forget_losses()
        try:
            with ignoring_unsaved_weights(self.model):
                return super().train(resume_from_checkpoint, trial, ignore_keys_for_eval)
        finally:
            # An interrupted training must not stop later evaluations.
            self._forget_losses()
            self._note_trained_texts()

    def _save_checkpoint(self, model, trial):
        self._check_losses()
        # `Trainer` would upload checkpoints; the strategy may have changed since the arguments were made.
        self.args.check_hub_strategy()
        folder = Path(self._get_output_dir(trial=trial)) / f"{PREFIX_CHECKPOINT_DIR}-{self.state.global_step}"
        if self.args.should_save:
            # While a checkpoint is replaced, it counts as incomplete.
            invalidate_checkpoint(folder)
            if self.args.world_size > 1 and not self.args.save_only_model:
                announce_files(folder, ranks_of_folder(self.args))
            self._save_additions(folder)
        with writing_weights(folder):
            super()._save_checkpoint(model, trial)

    def _save_additions(self, folder: Path) -> None:
        """Save the weights that `Trainer` does not save in a checkpoint."""
        save_adapters(self._own_model, folder)

    def _load_from_checkpoint(self, resume_from_checkpoint, model=None):
        super()._load_from_checkpoint(resume_from_checkpoint, model)
        self._load_additions(resume_from_checkpoint, self._own_model if model is None else model)

    def _load_additions(self, folder: str, model: nn.Module) -> None:
        """Load the weights that [`~BaseTrainer._save_additions`] has saved in a checkpoint."""
        load_adapters(model, folder)
        if not shards_weights(self.args):
            load_renamed_weights(model, folder)

    def _run_epoch(self, *args, **kwargs):
        # A resumed state has the intervals of the earlier run.
        self.state.compute_steps(self.args, self.state.max_steps)
        # A resumed run that had stopped early, or ended within an epoch, does not continue.
        if not self.control.should_training_stop and self.state.global_step < self.state.max_steps:
            super()._run_epoch(*args, **kwargs)

    def _input_columns(self) -> list[str]:
        """Return the columns of the rows that the collators read."""
        if self.rules.columns is not None:
            return list(self.rules.columns)
        self._set_signature_columns_if_needed()
        names = input_names(self._own_model) - {*self._signature_columns}
        return [*self._signature_columns, *sorted(names)]

    def evaluate(self, eval_dataset=None, ignore_keys=None, metric_key_prefix="eval", **kwargs):
        """Evaluate as in `Trainer`. The number of given rows is logged, as they may not be the evaluation split."""
        metrics = super().evaluate(eval_dataset, ignore_keys, metric_key_prefix, **kwargs)
        if has_length(eval_dataset) and not isinstance(eval_dataset, str | dict) and not self._numbers_rows:
            self.state.log_history[-1][f"{metric_key_prefix}_num_examples"] = len(eval_dataset)
        return metrics

    def prediction_step(self, model, inputs, prediction_loss_only, ignore_keys=None):
        """Return loss, predictions and labels of an evaluation batch, as the rules or `Trainer` compute them."""
        result = self.rules.predict(self, model, inputs)
        if result is not None:
            return result
        loss, predictions, labels = super().prediction_step(model, inputs, prediction_loss_only, ignore_keys)
        num_labels = self._num_labels(inputs)
        if loss is not None and num_labels is not None:
            self._evaluation_loss.add(loss, num_labels, len(inputs["labels"]))
        return loss, predictions, labels

    def evaluation_loop(
        self, dataloader, description, prediction_loss_only=None, ignore_keys=None, metric_key_prefix="eval"
    ) -> EvalLoopOutput:
        """Run the evaluation, and add the metrics of the kind of model. The loss is a mean over labels, as in
        training."""
        if self.rules.needs_predictions:
            prediction_loss_only = False
        self._evaluation_loss = EvaluationLoss()
        output = super().evaluation_loop(dataloader, description, prediction_loss_only, ignore_keys, metric_key_prefix)
        loss = self._evaluation_loss.mean(self.accelerator)
        if loss is not None:
            output.metrics[f"{metric_key_prefix}_loss"] = loss
        return self.rules.add_metrics(output, self._evaluated, metric_key_prefix)

    @property
    def _own_model(self) -> nn.Module:
        """The trained model, without the wrappers of distributed training."""
        if is_unwrapped(self.model):
            return self.model
        return self.accelerator.unwrap_model(self.model)

    def _num_items(self, batch: dict[str, Any]) -> dict[str, torch.Tensor | int | None]:
        num_labels = self._num_labels(batch)
        return {} if num_labels is None else {"loss": num_labels}

    def _num_labels(self, batch: Mapping[str, Any]) -> torch.Tensor | int | None:
        """Return the number of labels, or of rows, that the model's own loss is averaged over; `None` if unknown."""
        labels = batch.get("labels")
        if not isinstance(labels, torch.Tensor):
            return None
        if self.rules.loss_per_row or labels.is_floating_point():
            return len(labels)
        return self.rules.count_labels(labels)

    def compute_loss(self, model, inputs, return_outputs=False, num_items_in_batch=None):
        """Return the loss, weighted in training by the batch's share of the step's rows or labels."""
        loss, outputs = super().compute_loss(model, dict(inputs), return_outputs=True)
        if model.training and num_items_in_batch is not None:
            loss = self._weight_by_items({"loss": loss}, inputs, num_items_in_batch)["loss"]
        return (loss, outputs) if return_outputs else loss

    @property
    def _notes_texts(self) -> bool:
        """`True` if saved folders record the training texts ([`~data.TrainingTexts`]). Streams are not read."""
        columns = getattr(self.train_dataset, "column_names", None) or ()
        return self.rules.notes_texts or (has_length(self.train_dataset) and "text" in columns)

    @cached_property
    def _own_texts(self) -> TrainingRecord:
        return record_class()() if self.train_dataset is None else record_class().from_rows(self.train_dataset)

    def _all_texts(self) -> TrainingRecord:
        return ancestry_of(self._own_model) | self._ancestry | self._own_texts

    def _note_trained_texts(self) -> None:
        if self._notes_texts and self.state.global_step:
            self._own_model.training_texts = self._all_texts()

    def _save(self, output_dir=None, state_dict=None) -> None:
        self._note_trained_texts()
        if has_lora(self._own_model):
            state_dict = merged_weights(self._own_model)
        folder = output_dir or self.args.output_dir
        token = self.args.hub_token
        # `Trainer` writes the arguments to a file.
        self.args.hub_token = None
        try:
            with writing_weights(folder):
                super()._save(output_dir, state_dict)
        finally:
            self.args.hub_token = token
        if self._notes_texts and self.args.should_save:
            write_training_texts(self._own_model, folder)

    def create_optimizer(self, model=None):
        """Create the optimizer, with separate parameter groups for the modules of `_own_rates`."""
        is_new = self.optimizer is None
        optimizer = super().create_optimizer(model)
        if is_new:
            # `Trainer` makes two groups; the second one contains parameters without decay (biases, norms).
            for index, group in enumerate(list(optimizer.param_groups)):
                for module, rate, decay in self._own_rates():
                    module_ids = {id(parameter) for parameter in module.parameters()}
                    module_parameters = [parameter for parameter in group["params"] if id(parameter) in module_ids]
                    group["params"] = [parameter for parameter in group["params"] if id(parameter) not in module_ids]
                    if index > 0:
                        decay = 0.0
                    if module_parameters:
                        options = {"params": module_parameters, "lr": rate, "weight_decay": decay}
                        optimizer.add_param_group({**group, **options})
            optimizer.param_groups[:] = [group for group in optimizer.param_groups if group["params"]]
        return optimizer

    def _own_rates(self) -> list[tuple[nn.Module, float, float]]:
        """Return (module, learning rate, weight decay) for modules whose rates differ from the arguments."""
        return self.rules.own_rates()


def _check_not_empty(train_dataset: Any, eval_dataset: Any) -> None:
    """Raise `ValueError` if a dataset of known length is empty."""
    datasets = {"train_dataset": train_dataset, "eval_dataset": eval_dataset}
    if isinstance(eval_dataset, dict):
        del datasets["eval_dataset"]
        for split, rows in eval_dataset.items():
            datasets[f"eval_dataset {split}".strip()] = rows
    for name, rows in datasets.items():
        if has_length(rows) and len(rows) == 0:
            raise ValueError(f"`{name}` is empty. Pass at least one row, or `None`.")
