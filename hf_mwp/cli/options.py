"""Options of the commands, read from YAML files and flags."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from importlib import import_module
from typing import Any

from ..options import CommandOption, affects_result
from ..options.option_parser import OptionParser
from ..options.parsing import parse
from ..tasks.commands import STAGES, commands_with, options_of, trains, types_of


def parse_command(
    command: str,
    description: str,
    argv: Sequence[str],
    types: Sequence[type] | None = None,
    positional: str | None = None,
) -> tuple[list, dict[str, Any]]:
    """
    Read the options of a command, see [`~options.parsing.parse`], and register models and pipeline with Transformers.

    Args:
        command (`str`), description (`str`), argv (`Sequence[str]`): The command and its arguments.
        types (`Sequence[type]`, *optional*): Dataclasses of the options, for a command that cannot be a stage.
        positional (`str`, *optional*): Name of a list of arguments without a flag.
    """
    common = types_of(command, trainer=False) if trains(command) else None
    types = partial(types_of, command) if types is None else types
    parsed = parse(command, description, types, argv, positional, common, commands_with)
    import_module("hf_mwp.pipelines")
    return parsed


def all_options() -> dict[str, dict[str, CommandOption]]:
    """Return the options of all commands that can be stages, with the defaults that a run records."""
    return {command: _options_of(command) for command in STAGES}


def _options_of(command: str) -> dict[str, CommandOption]:
    defaults = vars(OptionParser(command, "", types_of(command)).parse_args([]))
    return {name: CommandOption(defaults[name], affects_result(each)) for name, each in options_of(command).items()}
