"""The options that each command has."""

from __future__ import annotations

from dataclasses import fields
from importlib import import_module

from ...option_roles import CommandOption, role_of
from .option_parser import OptionParser


def options_of(command: str) -> dict[str, CommandOption]:
    """The options of a command, by their names; none of a command that has a parser of its own."""
    types = getattr(import_module(f"..commands.{command}", __package__), "argument_types", list)()
    defaults = vars(OptionParser(command, "", types).parse_args([]))
    options = (field for each in types for field in fields(each) if field.init)
    return {field.name: CommandOption(role_of(field), defaults[field.name]) for field in options}


def all_options() -> dict[str, dict[str, CommandOption]]:
    """The options of all commands, by the names of the commands."""
    from ..main import COMMANDS

    return {command: options_of(command) for command in COMMANDS}
