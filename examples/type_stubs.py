"""
Writes `__init__.pyi` into each public package of hf_mwp, whose names are loaded on first use, so that editors and
type checkers know them.

    python examples/type_stubs.py            # after a change of public names
    python examples/type_stubs.py --check    # fail if a file is not up to date
"""

import argparse
import importlib
import sys
from pathlib import Path


ROOT = Path(__file__).parents[1]
PACKAGES = (
    "hf_mwp",
    "hf_mwp.compress.losses",
    "hf_mwp.compress.distillation.objectives",
    "hf_mwp.compress.pruning",
    "hf_mwp.runtime",
    "hf_mwp.runtime.problems",
    "hf_mwp.solver.metrics",
)


def stub(package: str) -> str:
    """Return the text of the stub of a package: an import of each public name from the module that defines it."""
    module = importlib.import_module(package)
    lines = []
    for name in module.__all__:
        value = getattr(module, name)
        if hasattr(value, "__path__"):
            parent, _, child = value.__name__.rpartition(".")
            lines.append(f"from {parent} import {child} as {name}")
            continue
        source = getattr(value, "__module__", None)
        if source is None or getattr(sys.modules.get(source), name, None) is not value:
            source = defining_module(module, name)
        lines.append(f"from {source} import {name} as {name}")
    lines.sort()
    if package == "hf_mwp":
        lines += ["", "__version__: str"]
    return "\n".join(lines) + "\n"


def defining_module(module, name: str) -> str:
    """Return the module of a constant, from the table of the package."""
    for source, names in module._NAMES.items():
        if name in names:
            return importlib.import_module(f".{source}", module.__name__).__name__
    raise LookupError(f"{module.__name__}._NAMES has no {name}. Add it.")


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Write the type stubs of the public packages.")
    parser.add_argument("--check", action="store_true", help="fail if a file is not up to date")
    args = parser.parse_args(arguments)
    old = []
    for package in PACKAGES:
        path = ROOT.joinpath(*package.split(".")) / "__init__.pyi"
        text = stub(package)
        if args.check:
            if not path.exists() or path.read_text("utf-8") != text:
                old.append(path.relative_to(ROOT).as_posix())
            continue
        path.write_text(text, encoding="utf-8")
    if old:
        print(f"{', '.join(old)}: not up to date. Run `python examples/type_stubs.py`.", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
