"""What an option is for, declared with its field: other rooms ask for roles and never for names of options."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import MISSING, Field, field, fields
from enum import Flag, auto
from functools import partial
from typing import Any, NamedTuple


class Role(Flag):
    """What an option says; several may be joined by `|`. An option without a role says how a model is made."""

    NONE = 0
    COMMON = auto()  # most runs set it: the short `--help` shows it

    # What its value names.
    ENCODER = auto()
    SOLVER = auto()
    START = auto()  # besides one of the two: the command's own model begins as this one
    TEACHER = auto()  # besides the second: a model that another one learns from
    TOKENIZER = auto()
    TAGGER = auto()
    DATASET = auto()  # problems with all their parts
    TASK = auto()  # what is learned in place of problems, from the folder that data sets are looked for in
    SOURCES = auto()  # files, data sets, parts of data sets
    EXTRA = auto()  # the same, which lie beside the data set unless they are found elsewhere
    TEXTS = auto()  # besides one of the last two: only the texts are read
    NEAR = auto()  # the folder where data sets are looked for first

    ONE_OR_MORE = auto()  # besides one of those above: of several values a list, of one the value itself

    # What layers the command's own model has.
    SHAPE = auto()  # the fields of one from random weights
    LAYERS = auto()  # those that it keeps of what it begins as
    WIDTHS = auto()  # other sizes, for which it keeps three layers unless others are named
    AFTER = auto()  # those after which something is put, from 1
    MAPPING = auto()  # which layer of a teacher each of them learns from
    COMPARED = auto()  # what of these is compared, `"none"` if nothing is

    # What no weight depends on.
    LAUNCH = auto()  # how the run is started, and with what secrets
    PLACE = auto()  # where files lie
    WRITTEN = auto()  # besides the last: a file that the command writes
    CACHE = auto()  # where something is kept for other runs to use
    TOLD = auto()  # what is told of the run while it lasts
    LOGGED = auto()  # what is written down of it
    SAVED = auto()  # what is saved, when a run is over, and what is done then
    DEVICE = auto()  # on which devices and how fast it is computed

    LENGTH = auto()  # how long is trained: a resumed run may be longer


TRAINER_OPTIONS = {
    Role.LAUNCH | Role.COMMON: ("resume", "overwrite"),
    Role.LAUNCH: ("resume_from_checkpoint", "hub_token"),
    Role.PLACE: ("output_dir",),
    Role.CACHE: ("teacher_cache_dir", "beams_dir", "generations_dir", "stages_dir"),
    Role.TOLD: (
        *("disable_tqdm", "logging_first_step", "report_to", "run_name", "log_level", "log_level_replica"),
        *("log_on_each_node", "project", "trackio_space_id", "trackio_bucket_id", "trackio_static_space_id"),
        *("do_train", "do_eval", "do_predict"),
    ),
    Role.LOGGED: (
        *("logging_strategy", "logging_steps", "logging_nan_inf_filter", "include_num_input_tokens_seen"),
        *("skip_memory_metrics", "write_predictions", "debug"),
    ),
    Role.SAVED: (
        *("save_strategy", "save_steps", "save_total_limit", "save_only_model", "save_on_each_node"),
        *("enable_jit_checkpoint", "push_to_hub", "hub_private_repo", "hub_model_id", "hub_strategy"),
        *("hub_always_push", "hub_revision", "early_stopping_patience"),
    ),
    Role.DEVICE: (
        *("use_cpu", "local_rank", "per_device_eval_batch_size", "eval_accumulation_steps", "torch_compile"),
        *("torch_compile_backend", "torch_compile_mode", "torch_empty_cache_steps", "use_cache"),
        *("activation_checkpointing", "activation_checkpointing_kwargs", "gradient_checkpointing"),
        *("gradient_checkpointing_kwargs", "dataloader_num_workers", "dataloader_pin_memory"),
        *("dataloader_persistent_workers", "dataloader_prefetch_factor", "dataloader_multiprocessing_context"),
        *("ddp_backend", "ddp_timeout", "ddp_bucket_cap_mb", "ddp_find_unused_parameters", "ddp_static_graph"),
    ),
    Role.LENGTH: ("num_train_epochs", "max_steps"),
    Role.MAPPING: ("layer_mapping",),
    Role.COMPARED: ("hidden_loss",),
}
# By name: in the metadata of trainers' configs `HfArgumentParser` expects nothing but what argparse takes.
ROLES = {name: role for role, names in TRAINER_OPTIONS.items() for name in names}


class CommandOption(NamedTuple):
    """
    An option of a command, without the class that declares it.

    Args:
        role ([`Role`]): What it is for.
        default (`Any`): What it is if it is not given.
    """

    role: Role
    default: Any


def option(default: Any, help: str, role: Role = Role.NONE, choices: Sequence[str] | None = None) -> Any:
    """
    A dataclass field that is an option of a command.

    Args:
        default (`Any`): Its default; a list or dict is copied for each instance.
        help (`str`): What `--help` says of it.
        role ([`Role`], *optional*): What it is for.
        choices (`Sequence[str]`, *optional*): All values that it takes.

    Example:

    ```python
    @dataclass
    class SolveArguments:
        model: str | None = option(None, "Folder or Hub id of a solver.", Role.SOLVER)
    ```
    """
    metadata: dict[str, Any] = {"help": help, "role": role}
    if choices is not None:
        metadata["choices"] = list(choices)
    if isinstance(default, list | dict):
        return field(default_factory=partial(copy.copy, default), metadata=metadata)
    return field(default=default, metadata=metadata)


def role_of(option: Field) -> Role:
    """The role of an option: what it is declared with, and what its name has in `ROLES`."""
    return option.metadata.get("role", Role.NONE) | ROLES.get(option.name, Role.NONE)


def default_of(option: Field) -> Any:
    """The default of an option, `dataclasses.MISSING` if it has none."""
    return option.default if option.default_factory is MISSING else option.default_factory()


def given_options(options: Any) -> list[str]:
    """The fields of a dataclass of options that have another value than their default."""
    return [each.name for each in fields(options) if getattr(options, each.name) != default_of(each)]


def options_in(*dataclass_types: type) -> dict[str, CommandOption]:
    """The options that the fields of dataclasses are, by their names."""
    declared = (each for kind in dataclass_types for each in fields(kind) if each.init)
    return {each.name: CommandOption(role_of(each), default_of(each)) for each in declared}
