"""The options that each command has."""

from __future__ import annotations

from ...option_roles import CommandOption, options_in
from ..commands import command_module


def all_options() -> dict[str, dict[str, CommandOption]]:
    """The options of all commands, by the names of the commands; none of one that has a parser of its own."""
    from ..main import COMMANDS

    return {name: options_in(*getattr(command_module(name), "argument_types", list)()) for name in COMMANDS}
