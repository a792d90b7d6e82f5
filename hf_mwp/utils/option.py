"""Declaration and inspection of command options, which are dataclass fields."""

import copy
from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, Field, field, fields
from functools import partial
from pathlib import Path
from typing import Any


# Fields of `TrainingArguments` and the trainers' configs that change no result; `HfArgumentParser` cannot mark them.
WITHOUT_EFFECT = frozenset(
    {
        # start and place
        "output_dir",
        "hub_token",
        "teacher_cache_dir",
        "stages_dir",
        "run_name",
        "project",
        # progress and log
        "disable_tqdm",
        "logging_first_step",
        "report_to",
        "log_level",
        "log_level_replica",
        "log_on_each_node",
        "trackio_space_id",
        "trackio_bucket_id",
        "trackio_static_space_id",
        "do_train",
        "do_eval",
        "do_predict",
        "logging_strategy",
        "logging_nan_inf_filter",
        "include_num_input_tokens_seen",
        "skip_memory_metrics",
        "debug",
        # checkpoints and publishing
        "save_strategy",
        "save_total_limit",
        "save_only_model",
        "save_on_each_node",
        "enable_jit_checkpoint",
        "push_to_hub",
        "hub_private_repo",
        "hub_model_id",
        "hub_strategy",
        "hub_always_push",
        "hub_revision",
        # device
        "use_cpu",
        "local_rank",
        "per_device_eval_batch_size",
        "eval_accumulation_steps",
        "torch_compile",
        "torch_compile_backend",
        "torch_compile_mode",
        "torch_empty_cache_steps",
        "use_cache",
        "activation_checkpointing",
        "activation_checkpointing_kwargs",
        "gradient_checkpointing",
        "gradient_checkpointing_kwargs",
        "dataloader_num_workers",
        "dataloader_pin_memory",
        "dataloader_persistent_workers",
        "dataloader_prefetch_factor",
        "dataloader_multiprocessing_context",
        "ddp_backend",
        "ddp_timeout",
        "ddp_bucket_cap_mb",
        "ddp_find_unused_parameters",
        "ddp_static_graph",
    }
)

# Keys of a field's metadata that are not arguments of argparse.
OWN_KEYS = ("required", "common", "affects_result", "locate", "positional", "only_in_commands")
# Attribute of parsed options with the values before the dataclass changed them.
GIVEN = "_given_values"


def option(
    default: Any,
    help: str,
    *,
    required: bool = False,
    common: bool = False,
    affects_result: bool = True,
    locate: Callable[[str, Mapping[str, Any]], Path | None] | None = None,
    positional: bool = False,
    choices: Sequence[str] | None = None,
) -> Any:
    """
    Declare a dataclass field that is an option of a command; a default list or dict is copied. A `required` option has
    an empty default. The short `--help` lists `common` options. With `affects_result=False`, the value may differ when
    a finished stage is reused or a run resumes. `locate` receives a value (each item of a list) and all options,
    returns its path, or `None` for a Hub id, and raises `ValueError` if it does not exist. A `positional` option has
    no flag. A list of `choices` may grow.
    """
    metadata = {
        "help": f"{help} Must be given." if required else help,
        "required": required,
        "common": common,
        "affects_result": affects_result,
        "locate": locate,
        "positional": positional,
    }
    if choices is not None:
        metadata["choices"] = choices if isinstance(choices, list) else list(choices)
    if isinstance(default, list | dict):
        return field(default_factory=partial(copy.copy, default), metadata=metadata)
    return field(default=default, metadata=metadata)


def affects_result(option: Field) -> bool:
    """Return whether the result of a command depends on the option."""
    return option.metadata.get("affects_result", True) and option.name not in WITHOUT_EFFECT


def default_of(option: Field) -> Any:
    """Return the default of an option, or `dataclasses.MISSING` if it has no default."""
    return option.default if option.default_factory is MISSING else option.default_factory()


def given_options(options: Any) -> list[str]:
    """Return the names of the fields whose value differs from the default."""
    names = []
    for option in fields(options):
        if getattr(options, option.name) != default_of(option):
            names.append(option.name)
    return names


def option_values(*options: Any) -> dict[str, Any]:
    """Return the values of options by name, as they were before `__post_init__`, for `--config` to read again."""
    values = {}
    for instance in options:
        given_values = getattr(instance, GIVEN, None)
        values |= given_values or {name: getattr(instance, name) for name in options_in(type(instance))}
    return values


def options_in(*dataclass_types: type) -> dict[str, Field]:
    """Return the option fields of dataclasses by name."""
    options = {}
    for dataclass_type in dataclass_types:
        for option in fields(dataclass_type):
            # `HfArgumentParser` has a flag for each field with `init`.
            if option.init or option.metadata.get("only_in_commands"):
                options[option.name] = option
    return options
