"""The scripts of `examples` as modules."""

import importlib.util
import sys
from pathlib import Path
from types import ModuleType


EXAMPLES = Path(__file__).parents[2] / "examples"


def load_script(name: str | Path) -> ModuleType:
    """Import a script by its path in `examples`; by name alone, `reproduce` would be the package beside it."""
    spec = importlib.util.spec_from_file_location(f"script_{Path(name).stem}", EXAMPLES / name)
    module = importlib.util.module_from_spec(spec)
    # Checkpoints pickle objects of a script's classes, for which its module must be known.
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module
