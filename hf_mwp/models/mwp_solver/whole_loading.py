"""Function that loads solvers and raises an error if weights are missing, which would be random numbers."""

from __future__ import annotations

import json
from collections.abc import Callable
from os import PathLike
from pathlib import Path
from typing import Any

from safetensors import SafetensorError, safe_open
from transformers import PreTrainedConfig

from ...downloads import find_beside, hub_options, missing_folder, note_download
from ...runtime.solver import EXPORT_RECORD
from .configuration_mwp_solver import MwpSolverConfig


WEIGHTS, INDEX = "model.safetensors", "model.safetensors.index.json"


class SolverFolderError(Exception):
    """
    Error for a folder or repository without a complete solver: weights are missing, damaged, or belong to a different
    model. It does not derive from `ValueError`, `OSError`, `TypeError` or `RuntimeError`, because
    `transformers.pipeline` would catch these, try other classes and hide the message.
    """


def load_whole(load: Callable, source: str | PathLike | None, *args, **kwargs) -> Any:
    """
    Load a solver by `load`, the `from_pretrained` of `PreTrainedModel`. Raises `OSError` if the folder does not exist,
    and [`SolverFolderError`] if the model is not a solver, a file is damaged or missing, or weights are missing,
    unexpected, or have a different shape (unless `ignore_mismatched_sizes=True`). Weights of bottleneck networks may
    differ according to the given config.
    """
    with_info = kwargs.pop("output_loading_info", False)
    any_size = kwargs.pop("ignore_mismatched_sizes", False)
    hub = hub_options(kwargs)
    if source is None:
        # The weights are passed as `state_dict`.
        return load(source, *args, output_loading_info=with_info, ignore_mismatched_sizes=any_size, **kwargs)
    if fault := missing_folder(source):
        raise OSError(fault)
    if not isinstance(kwargs.get("config"), PreTrainedConfig):
        kind = PreTrainedConfig.get_config_dict(kwargs.get("config") or source, **hub)[0].get("model_type")
        if kind != MwpSolverConfig.model_type:
            raise SolverFolderError(
                f"{source} contains a model of type {kind!r}, not a solver (type {MwpSolverConfig.model_type!r}). "
                f"Train a solver from an encoder with `hf-mwp train --encoder {source}`."
            )
    folder = Path(source, hub.get("subfolder", ""))
    file = INDEX if (folder / INDEX).exists() and not (folder / WEIGHTS).exists() else WEIGHTS
    try:
        model, found = load(source, *args, ignore_mismatched_sizes=True, output_loading_info=True, **kwargs)
    # Damaged files raise OSError, ValueError, TypeError, KeyError, ...
    except Exception as error:
        if folder.is_dir() and (damage := _damage(folder, file)):
            raise SolverFolderError(f"{source} {damage}. Download or train it again.") from error
        raise
    missing, unexpected = set(found["missing_keys"]), set(found["unexpected_keys"])
    if any(name.startswith("bottlenecks.") for name in missing | unexpected):
        # The caller's config may add bottleneck networks, which are new, or leave some out.
        saved = PreTrainedConfig.get_config_dict(source, **hub)[0].get("bottleneck_layers") or ()
        changed = tuple(f"bottlenecks.{layer}." for layer in {*saved} ^ {*model.config.bottleneck_layers})
        missing, unexpected = (
            {each for each in names if not each.startswith(changed)} for names in (missing, unexpected)
        )
    if (missing or unexpected) and find_beside(source, EXPORT_RECORD, **hub):
        raise SolverFolderError(
            f"{source} was exported for the runtime without PyTorch. Load it with `hf_mwp.runtime.load_solver`, or "
            "pass `--runtime numpy` to `hf-mwp solve`."
        )
    fault, foreign = None, "weights and config.json belong to different models"
    if missing:
        fault = f"{file} lacks {_told(missing)} of the solver, which would be random numbers"
    elif unexpected:
        fault = f"{file} has {_told(unexpected)} that the solver of config.json does not have; {foreign}"
    elif found["mismatched_keys"] and not any_size:
        name, stored, own = min(found["mismatched_keys"])
        fault = f"{name} is {tuple(stored)} in {file} and {tuple(own)} by config.json; {foreign}"
    if fault:
        raise SolverFolderError(f"{source}: {fault}. Download or train it again.")
    note_download(model, hub)
    return (model, found) if with_info else model


def _damage(folder: Path, file: str) -> str | None:
    """Return the fault of the weight files in a local folder, or `None`."""
    try:
        files = [file]
        if file == INDEX:
            files = sorted({*json.loads((folder / INDEX).read_text("utf-8"))["weight_map"].values()})
        for file in files:
            with safe_open(folder / file, "pt"):
                pass
    except (SafetensorError, OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        return f"has a damaged or missing file ({file}: {type(error).__name__}: {error})"
    return None


def _told(names: set[str]) -> str:
    shown = [*sorted(names)[:3], *(["..."] if len(names) > 3 else [])]
    return f"{len(names)} weight{'s' * (len(names) > 1)} ({', '.join(shown)})"
