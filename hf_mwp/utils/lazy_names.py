"""Lazy loading of the public names of a package."""

from collections.abc import Callable, Iterable, Mapping
from importlib import import_module
from typing import Any


def lazy_names(
    package: str, names: Mapping[str, Iterable[str]]
) -> tuple[list[str], Callable[[str], Any], Callable[[], list[str]]]:
    """Return `__all__`, `__getattr__` and `__dir__` of a package; `names` maps each module to its public names."""
    modules = {}
    for module, module_names in names.items():
        modules |= dict.fromkeys(module_names, module)

    def get(name: str) -> Any:
        if name in modules:
            return getattr(import_module(f".{modules[name]}", package), name)
        raise AttributeError(f"module {package!r} has no attribute {name!r}")

    return sorted(modules), get, lambda: sorted(modules)
