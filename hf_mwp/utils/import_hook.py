"""Hook that calls a function after a package is imported for the first time."""

import sys
from collections.abc import Callable, Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any


class ImportHook(MetaPathFinder):
    """
    Finder that calls a function once, after `package` is imported for the first time.

    Modules of `caller` may import `package` themselves, and the function may import these modules. Therefore the call
    waits until no module of `caller` is half imported.

    The finder finds no module itself: it wraps the loaders that the finders after it return. Modules keep their own
    loaders.

    Args:
        package (`str`): Name of a top-level package, such as `"transformers"`.
        caller (`str`): Name of the package whose submodules the function may import.
        function (`Callable`): Function without arguments. If it raises an error, the import raises it.
    """

    def __init__(self, package: str, caller: str, function: Callable[[], Any]) -> None:
        self.package = package
        self.caller = caller
        self.function = function
        self.is_imported = False
        self.half_imported: set[str] = set()

    def install(self) -> None:
        """Call the function now if the package is imported already, otherwise when it is."""
        if self.package in sys.modules:
            self.function()
        else:
            sys.meta_path.insert(0, self)

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Return the spec of the first finder after this one that finds the module, with a wrapped loader."""
        is_watched = name == self.package or name.startswith(f"{self.caller}.")
        if not is_watched or self not in sys.meta_path:
            return None
        later_finders = sys.meta_path[sys.meta_path.index(self) + 1 :]
        for finder in later_finders:
            spec = finder.find_spec(name, path, target)
            if spec is not None:
                if spec.loader is not None:
                    spec.loader = _WatchedLoader(spec.loader, self)
                return spec
        return None

    def call_when_complete(self) -> None:
        """Remove the hook and call the function if the package is imported and no module is half imported."""
        if self.is_imported and not self.half_imported and self in sys.meta_path:
            sys.meta_path.remove(self)
            self.function()


class _WatchedLoader(Loader):
    """Loader that tells the hook when a module is imported."""

    def __init__(self, loader: Any, hook: ImportHook) -> None:
        self.loader = loader
        self.hook = hook

    def __getattr__(self, name: str) -> Any:
        # Such as `get_code`, which `python -m` calls.
        return getattr(self.loader, name)

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        return self.loader.create_module(spec)

    def exec_module(self, module: ModuleType) -> None:
        # Restore the loader, as `importlib.util.LazyLoader` does.
        name = module.__name__
        module.__loader__ = self.loader
        module.__spec__.loader = self.loader
        self.hook.half_imported.add(name)
        try:
            self.loader.exec_module(module)
            if name == self.hook.package:
                self.hook.is_imported = True
        finally:
            self.hook.half_imported.discard(name)
            self.hook.call_when_complete()
