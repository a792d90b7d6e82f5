"""The options that each command has."""

from __future__ import annotations

from dataclasses import Field, fields
from importlib import import_module


def options_of(command: str) -> dict[str, Field]:
    """The options of a command, by their names; none of a command that is not there or has a parser of its own."""
    from ..main import COMMANDS

    if command not in COMMANDS:
        return {}
    types = getattr(import_module(f"..commands.{command}", __package__), "argument_types", list)()
    return {field.name: field for each in types for field in fields(each) if field.init}


def all_options() -> dict[str, dict[str, Field]]:
    """The options of all commands, by the names of the commands."""
    from ..main import COMMANDS

    return {command: options_of(command) for command in COMMANDS}
