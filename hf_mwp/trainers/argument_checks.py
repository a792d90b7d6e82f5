"""Checks of the types and ranges of training arguments, which the libraries would make only during training."""

from __future__ import annotations

import math
from dataclasses import fields
from numbers import Integral, Real
from types import NoneType, UnionType
from typing import Union, get_args, get_origin, get_type_hints

from transformers import TrainingArguments


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
    (
        "greater than 0",
        lambda value: value > 0,
        ("temperature", "keyword_weight", "number_weight", "logging_steps", "eval_steps", "save_steps"),
    ),
    ("from 0 to 1", lambda value: 0 <= value <= 1, ("soft_label_weight", "expressiveness_weight")),
    (
        "at least 0 and below 1",
        lambda value: 0 <= value < 1,
        ("skew_alpha", "adam_beta1", "adam_beta2", "label_smoothing_factor", "validation_fraction"),
    ),
    ("above 0 and below 1", lambda value: 0 < value < 1, ("mlm_probability",)),
    ("at least 1, or -1 for the steps of all epochs", lambda value: value >= 1 or value == -1, ("max_steps",)),
)
# Kinds of values by the type that a field takes, with what they are called.
KINDS = {int: (Integral, "a whole number"), float: (Real, "a number"), bool: ((bool, Integral), "True or False")}


def check_types(args: TrainingArguments) -> None:
    """Raise `TypeError` if a field that takes a number or a boolean has a value of another type."""
    hints = get_type_hints(type(args))
    for each in fields(args):
        value, hint = getattr(args, each.name), hints[each.name]
        types = get_args(hint) if get_origin(hint) in (Union, UnionType) else (hint,)
        own = [kind for kind in types if kind is not NoneType]
        if value is None and NoneType in types or len(own) > 1 or own[0] not in KINDS:
            continue
        kind, title = KINDS[own[0]]
        # A whole number may be written as 1e3.
        if not isinstance(value, kind) and not (kind is Integral and isinstance(value, float) and value.is_integer()):
            raise TypeError(f"`{each.name}` must be {title}, got {value!r}.")


def check_values(args: TrainingArguments) -> None:
    """Raise `ValueError` for a value out of range, or that is not among the choices of its field."""
    for told, holds, names in RANGES:
        for name in names:
            if (value := getattr(args, name, None)) is not None and not holds(value):
                raise ValueError(f"`{name}` must be {told}, got {value}.")
    for each in fields(args):
        value, choices = getattr(args, each.name), each.metadata.get("choices")
        if choices is not None and value is not None and value not in choices:
            raise ValueError(f"`{each.name}` must be one of {', '.join(map(str, choices))}, got {value!r}.")
    if args.max_steps < 1 and not 0 < args.num_train_epochs < math.inf:
        raise ValueError(f"`num_train_epochs` must be greater than 0, got {args.num_train_epochs}.")
