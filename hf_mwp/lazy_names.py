"""Names of a package that are loaded when they are used."""

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any


def lazy_names(package: str, modules: Mapping[str, str]) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """`__getattr__` and `__dir__` of a package, by the module within it that has each name."""

    def get(name: str) -> Any:
        if name in modules:
            return getattr(import_module(f".{modules[name]}", package), name)
        raise AttributeError(f"module {package!r} has no attribute {name!r}")

    return get, lambda: sorted(modules)
