"""Mistakes in the arguments of a training, found before its work begins."""

from __future__ import annotations

import math
from contextlib import suppress
from dataclasses import fields
from functools import lru_cache
from numbers import Integral, Real
from types import NoneType, UnionType
from typing import Union, get_args, get_origin, get_type_hints

import torch
from transformers import Trainer, TrainingArguments, get_scheduler
from transformers.integrations import get_available_reporting_integrations
from transformers.utils import is_liger_kernel_available


# Ranges of arguments, of `TrainingArguments` and of the configs here: what is said of them, the test, and their names.
RANGES = (
    (
        "at least 1",
        lambda value: value >= 1,
        (
            *("per_device_train_batch_size", "per_device_eval_batch_size", "gradient_accumulation_steps"),
            *("save_total_limit", "eval_accumulation_steps", "num_beams", "max_decode_length"),
            *("early_stopping_patience", "cache_top_k", "max_parameters", "score_batch_size", "round_to"),
        ),
    ),
    (
        "finite and not negative",
        lambda value: 0 <= value < math.inf,
        (
            *("learning_rate", "weight_decay", "max_grad_norm", "neftune_noise_alpha", "adam_epsilon", "data_seed"),
            *("dataloader_num_workers", "eval_delay", "decoder_learning_rate", "decoder_weight_decay", "seed"),
            *("early_stopping_threshold", "warmup_steps", "projection_learning_rate", "prediction_weight"),
            *("embedding_weight", "mlm_loss_weight", "pos_loss_weight"),
        ),
    ),
    ("greater than 0", lambda value: value > 0, ("temperature", "keyword_weight", "number_weight")),
    ("from 0 to 1", lambda value: 0 <= value <= 1, ("soft_label_weight", "expressiveness_weight")),
    (
        "at least 0 and below 1",
        lambda value: 0 <= value < 1,
        ("adam_beta1", "adam_beta2", "label_smoothing_factor", "validation_fraction"),
    ),
)
# Kinds of values by the types that a field takes, with what they are called.
KINDS = {
    (int,): (Integral, "a whole number"),
    (float,): (Real, "a number"),
    (bool,): ((bool, Integral), "True or False"),
}


def check_types(args: TrainingArguments) -> None:
    """Raises `TypeError` if a field that takes numbers, or yes and no, has a value of another type."""
    for name, (types, optional) in _types(type(args)).items():
        value = getattr(args, name)
        kind, title = KINDS.get(types, (object, ""))
        if value is None and optional or isinstance(value, kind):
            continue
        # `IntervalStrategy` and the like are no plain types, and a whole number may be written as 1e3.
        if not (types == (int,) and isinstance(value, float) and value.is_integer()):
            raise TypeError(f"`{name}` must be {title}, got {value!r}.")


def check_packages(args: TrainingArguments) -> None:
    """Raises `ValueError` if a package that an argument needs is not installed."""
    if args.deepspeed:
        from transformers.integrations import is_deepspeed_available

        if not is_deepspeed_available():
            raise ValueError("`deepspeed` needs the package deepspeed: pip install deepspeed.")
    if args.use_liger_kernel and not is_liger_kernel_available():
        raise ValueError("`use_liger_kernel` needs the package liger-kernel: pip install liger-kernel.")


def check_values(args: TrainingArguments) -> None:
    """Raises `ValueError` for values that the libraries would refuse only when training has begun, or not at all."""
    for told, holds, names in RANGES:
        for name in names:
            if (value := getattr(args, name, None)) is not None and not holds(value):
                raise ValueError(f"`{name}` must be {told}, got {value}.")
    if args.max_steps != -1 and args.max_steps < 1:
        raise ValueError(f"`max_steps` must be at least 1, or -1 for those of all epochs, got {args.max_steps}.")
    if args.max_steps < 1 and not 0 < args.num_train_epochs < math.inf:
        raise ValueError(f"`num_train_epochs` must be greater than 0, got {args.num_train_epochs}.")
    for name in ("logging", "eval", "save"):
        steps = getattr(args, f"{name}_steps")
        if getattr(args, f"{name}_strategy") == "steps" and not (steps or 0) > 0:
            raise ValueError(f"`{name}_steps` must be greater than 0, got {steps}.")
    # What is asked for by name; `"all"` has become the names of those that are there.
    known = {*get_available_reporting_integrations(), "flyte", "azure_ml"}  # these two it does not always list
    missing = [name for name in args.report_to if name not in known]
    if missing:
        raise ValueError(
            f"`report_to`: the package of {missing[0]} is not installed, or there is no such reporter: install it, or "
            'take `report_to="none"`.'
        )
    _check_optimizer(args)


def _check_optimizer(args: TrainingArguments) -> None:
    for setting in (args.optim_args or "").split(","):
        if setting.strip() and "=" not in setting:
            raise ValueError(f"`optim_args` takes settings such as 'rank=4,scale=2', got {args.optim_args!r}.")
    try:
        # What it says of the model's layers is nothing to go by: there is no model yet.
        with suppress(ValueError):
            Trainer.get_optimizer_cls_and_kwargs(args, torch.nn.Linear(1, 1))
    except ImportError as error:
        raise ValueError(f"`optim`: {error}") from error
    weights = torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=1e-3)
    steps = args.max_steps if args.max_steps > 0 else 100
    kind = {
        "num_warmup_steps": args.get_warmup_steps(steps),
        "num_training_steps": steps,
        "scheduler_specific_kwargs": args.lr_scheduler_kwargs,
    }
    try:
        get_scheduler(args.lr_scheduler_type, weights, **kind)
    except (TypeError, ValueError, AttributeError) as error:
        raise ValueError(f"`lr_scheduler_type`, `lr_scheduler_kwargs`: {error}") from error


@lru_cache
def _types(config_class: type) -> dict[str, tuple[tuple[type, ...], bool]]:
    """Return the type of each field with a single type, and whether it accepts `None`."""
    hints, found = get_type_hints(config_class), {}
    for each in fields(config_class):
        hint = hints[each.name]
        parts = get_args(hint) if get_origin(hint) in (Union, UnionType) else (hint,)
        types = tuple(part for part in parts if part is not NoneType)
        if types in KINDS:
            found[each.name] = types, NoneType in parts
    return found
