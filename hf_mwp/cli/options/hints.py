"""What an unknown option may have been meant as."""

from __future__ import annotations

import difflib

from .command_options import all_options
from .option_parser import OptionParser


def hint(name: str, parser: OptionParser, prefix: str = "") -> str:
    """
    A sentence, with a space before it: an option of the same command that is spelled nearly so, or else the commands
    which have this one, or where all are listed.

    Args:
        name (`str`): The unknown flag or key.
        parser ([`OptionParser`]): The command's options.
        prefix (`str`, *optional*, defaults to `""`): What options begin with: `"--"` for flags.
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
