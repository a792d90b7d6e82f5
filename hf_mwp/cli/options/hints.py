"""What an unknown option may have been meant as."""

from __future__ import annotations

import difflib

from ...option_roles import CommandOption, options_in
from ..commands import command_module
from .option_parser import OptionParser


def hint(name: str, parser: OptionParser, prefix: str = "") -> str:
    """
    A sentence, with a space before it: an option of the same command that is spelled nearly so, or else the commands
    which have this one, or where all are listed. Flags have the prefix `"--"`.
    """
    known = [option.removeprefix("--") for action in parser._actions for option in action.option_strings]
    name = name.removeprefix("--").replace("-", "_")
    close = difflib.get_close_matches(name, known, n=1, cutoff=0.8)
    if close:
        return f" Did you mean {prefix + close[0]!r}?"
    owners = commands_with(name)
    if owners:
        return f" It is an option of {' and '.join(f'`hf-mwp {owner}`' for owner in owners)}."
    close = difflib.get_close_matches(name, known, n=1, cutoff=0.7)
    if close:
        return f" Did you mean {prefix + close[0]!r}?"
    return " `--help all` lists all options."


def commands_with(name: str) -> list[str]:
    """The commands that have an option."""
    return [command for command, options in all_options().items() if name in options]


def all_options() -> dict[str, dict[str, CommandOption]]:
    """The options of all commands, by the names of the commands; none of one that has a parser of its own."""
    from ..main import COMMANDS

    return {command: _options_of(command) for command in COMMANDS}


def _options_of(command: str) -> dict[str, CommandOption]:
    """Roles as they are declared, defaults as a run records them."""
    types = getattr(command_module(command), "argument_types", list)()
    defaults = vars(OptionParser(command, "", types).parse_args([]))
    return {name: CommandOption(each.role, defaults[name]) for name, each in options_in(*types).items()}
