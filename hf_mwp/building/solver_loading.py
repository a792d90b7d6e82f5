"""Solvers, encoders and processors from folders and the Hub, with errors that say what to do."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

from ..usage_error import UsageError


if TYPE_CHECKING:
    from ..data.batches.mwp_processor import MwpProcessor
    from ..models import MwpSolver

WEIGHTS = ("model.safetensors", "model.safetensors.index.json")
# Where the quickstart leaves its models: the default of commands that take a solver, and no name of the Hub.
QUICKSTART = "hf_mwp_quickstart"
PICKLES = ("pytorch_model.bin", "pytorch_model.bin.index.json")


def is_path(name: str) -> bool:
    """Whether a name is written as that of a local folder, and not as a Hub id, which has one slash at most."""
    return name.startswith((".", "/", "~")) or name.count("/") > 1 or bool(Path(name).suffix)


def check_folder(name: str, model_type: str | None = None) -> None:
    """
    Looks whether a local folder can be a model; what is no local path is taken for a Hub id and passes.

    Args:
        name (`str`): Folder or Hub id.
        model_type (`str`, *optional*): The type that its `config.json` must have.

    Raises:
        UsageError: a path that does not exist or is no folder, a folder without configuration or weights, one of
            another type, or one whose weights are a pickle.
    """
    path = Path(name)
    if not path.exists():
        if path.parts[:1] == (QUICKSTART,):
            raise UsageError(
                f"There is no folder {name}: run `hf-mwp quickstart`, which makes it, or give another, such as "
                "`--model FOLDER_OR_HUB_ID`."
            )
        if is_path(name):
            raise UsageError(f"There is no folder {name}.")
        return
    if not path.is_dir():
        raise UsageError(f"{name} is a file; give the folder of the model.")
    config = path / "config.json"
    if not config.exists():
        hint = _hint(path, model_type)
        raise UsageError(f"{name} is no model folder: it has no config.json.{hint}")
    try:
        found = json.loads(config.read_text(encoding="utf-8")).get("model_type")
    except (ValueError, AttributeError) as error:
        raise UsageError(f"{config} cannot be read as a model's configuration: {error}") from error
    if model_type is not None and found != model_type:
        raise UsageError(
            f"{name} holds a model of type {found!r}, but a solver (type {model_type!r}) is needed; "
            f"`hf-mwp train --encoder {name}` makes one of an encoder."
        )
    if not any((path / file).exists() for file in WEIGHTS):
        if any((path / file).exists() for file in PICKLES):
            raise UsageError(
                f"{name} has its weights in a pickle file, which can run code when it is loaded and is refused; "
                "convert it to safetensors (model.save_pretrained of a current transformers writes that)."
            )
        raise UsageError(f"{name} has a config.json but no weights ({WEIGHTS[0]}).")


def load_solver(name: str, **config_fields) -> tuple[MwpSolver, MwpProcessor]:
    """
    Loads a solver and its processor.

    Args:
        name (`str`): Folder or Hub id.
        config_fields: Fields of its config to change.

    Raises:
        UsageError: see [`check_folder`]; or there is no processor beside the model, or it is another model's, or the
            download failed, or a file is damaged.
    """
    check_folder(name, "mwp_solver")
    from ..data.batches.mwp_processor import MwpProcessor
    from ..models import MwpSolver
    from ..models.mwp_solver import SolverFolderError

    if Path(name).is_dir() and not (Path(name) / MwpProcessor.file_name).exists():
        raise UsageError(
            f"{name} has a solver but no {MwpProcessor.file_name}; save its processor to the same folder."
        )
    try:
        model = MwpSolver.from_pretrained(name, use_safetensors=True, **config_fields)
        processor = MwpProcessor.from_pretrained(name)
    except SolverFolderError as error:
        raise UsageError(str(error)) from error
    except OSError as error:
        raise UsageError(f"{name} cannot be loaded: {error}") from error
    try:
        processor.check_model(model)
    except ValueError as error:
        raise UsageError(f"{name}: model and {MwpProcessor.file_name} do not belong together: {error}") from error
    return model, processor


def _hint(path: Path, model_type: str | None) -> str:
    inside = sorted(folder.parent for folder in path.glob("*/config.json"))
    if inside:
        return f" Did you mean {inside[0]}?"
    return " `hf-mwp train` and `hf-mwp quickstart` write such folders." if model_type == "mwp_solver" else ""
