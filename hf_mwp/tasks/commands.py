"""Options of a command, read from its configuration file and flags."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from importlib import import_module
from typing import Any

from ..options.parsing import parse
from ..options.stages import commands_with, trains, types_of


def parse_command(
    command: str,
    description: str,
    argv: Sequence[str],
    types: Sequence[type] | None = None,
    positional: str | None = None,
    register: bool = True,
) -> tuple[list, dict[str, Any]]:
    """
    Read the options of a command, see [`~options.parsing.parse`], and register models and pipeline with Transformers.

    Args:
        command (`str`), description (`str`), argv (`Sequence[str]`): The command and its arguments.
        types (`Sequence[type]`, *optional*): Dataclasses of the options, for a command that cannot be a stage.
        positional (`str`, *optional*): Name of an argument without a flag, a plural for several.
        register (`bool`, *optional*, defaults to `True`): Whether to register, which imports PyTorch.
    """
    common = types_of(command, trainer=False) if trains(command) else None
    types = partial(types_of, command) if types is None else types
    parsed = parse(command, description, types, argv, positional, common, commands_with)
    if register:
        import_module("hf_mwp.pipelines")
    return parsed
