"""The subcommands, one file each, here or in a folder of those that have something in common."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path

from ...tasks.commands import parse_command
from ..terminal.console import make_console


def run_command(name: str, argv: list[str]) -> int:
    """Parse the arguments of a subcommand, run it, and print its results; `--help` prints the options and exits."""
    folder = Path(__file__).parent
    (path,) = folder.rglob(f"{name.replace('-', '_')}.py")
    module = import_module(".".join((__name__, *path.relative_to(folder).with_suffix("").parts)))
    types, positional = getattr(module, "TYPES", None), getattr(module, "POSITIONAL", None)
    options, values = parse_command(name, module.__doc__, argv, types, positional)
    module.run(options, values, make_console(stderr=bool(values.get("json"))))
    return 0
