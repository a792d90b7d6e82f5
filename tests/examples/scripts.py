"""The scripts of `examples` as modules, files for them, and a check of their recipes."""

import importlib.util
import json
import sys
from pathlib import Path
from types import ModuleType

from hf_mwp.commands.recipes import Recipe


EXAMPLES = Path(__file__).parents[2] / "examples"
READERS = ("pretrain", "train", "distill", "stark", "evaluate", "pseudo-label")


def load_script(name: str | Path) -> ModuleType:
    """Import a script by its path in `examples`; by name alone, `reproduce` would be the package beside it."""
    spec = importlib.util.spec_from_file_location(f"script_{Path(name).stem}", EXAMPLES / name)
    module = importlib.util.module_from_spec(spec)
    # Checkpoints pickle objects of a script's classes, for which its module must be known.
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def write_json_lines(path: Path, rows: list[dict]) -> str:
    """Write rows as JSON lines, and return the path as text."""
    path.write_text("\n".join(map(json.dumps, rows)) + "\n", encoding="utf-8")
    return str(path)


def check_data_dir(recipe: Recipe) -> None:
    """Assert that each stage that reads a data set by its name has the folder of the data."""
    folders = {str(stage.folder) for stage in recipe.stages.values()}
    for stage in recipe.stages.values():
        dataset = stage.options.get("dataset")
        if dataset not in folders and stage.command in READERS:
            data_dir = None if dataset == "ape_clean" else recipe.variables["data_dir"]
            assert stage.options.get("data_dir") == data_dir, stage.name
