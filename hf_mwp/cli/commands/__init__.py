"""The subcommands, one file each, here or in a folder of those that have something in common."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from types import ModuleType


def command_module(name: str) -> ModuleType:
    """The module of a subcommand, whose `run` is called with the arguments."""
    folder = Path(__file__).parent
    (path,) = folder.rglob(f"{name.replace('-', '_')}.py")
    return import_module(".".join((__name__, *path.relative_to(folder).with_suffix("").parts)))
