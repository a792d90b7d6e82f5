"""Loading of solvers that refuses what is not whole: a solver with a few random weights answers like any other."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from os import PathLike
from pathlib import Path
from typing import Any

from safetensors import SafetensorError, safe_open
from transformers import PreTrainedConfig, PreTrainedModel

from ...downloads import hub_options, note_download
from .configuration_mwp_solver import MwpSolverConfig


WEIGHTS, INDEX = "model.safetensors", "model.safetensors.index.json"


class SolverFolderError(Exception):
    """
    A folder or repository that does not hold a whole solver: weights are missing or damaged, or belong to another
    model. No `ValueError`, `OSError`, `TypeError` or `RuntimeError`, which `transformers.pipeline` takes for a sign to
    try another class, and in the end buries in a traceback.
    """


def load_whole(load: Callable, source: str | PathLike | None, *args, **kwargs) -> Any:
    """
    Loads a solver by `load`, the `from_pretrained` of `PreTrainedModel`; raises [`SolverFolderError`] if the model is
    of another type, a file is damaged or missing, or weights are missing, have no place, or are of another shape
    (which `ignore_mismatched_sizes` allows). New bottleneck networks may be missing, and those that the config given
    has no more may be left over.
    """
    with_info = kwargs.pop("output_loading_info", False)
    any_size = kwargs.pop("ignore_mismatched_sizes", False)
    hub = hub_options(kwargs)
    if source is not None and not isinstance(kwargs.get("config"), PreTrainedConfig):
        kind = PreTrainedConfig.get_config_dict(kwargs.get("config") or source, **hub)[0].get("model_type")
        if kind != MwpSolverConfig.model_type:
            raise SolverFolderError(
                f"{source} holds a model of type {kind!r}, but a solver (type {MwpSolverConfig.model_type!r}) is "
                f"needed; `hf-mwp train --encoder {source}` makes one of an encoder."
            )
    try:
        with _without_report():
            model, found = load(source, *args, ignore_mismatched_sizes=True, output_loading_info=True, **kwargs)
    # What damaged files raise differs: OSError, ValueError, TypeError, KeyError, ...
    except Exception as error:
        damage = _damage(Path(source, kwargs.get("subfolder", ""))) if source is not None else None
        if damage is None:
            raise
        raise SolverFolderError(f"{source} {damage}: fetch or train it again.") from error
    _check_weights(model, source, found, any_size, hub)
    note_download(model, hub)
    return (model, found) if with_info else model


@contextmanager
def _without_report() -> Iterator[None]:
    """While inside, transformers does not advise to train further what is going to be refused."""
    logger = logging.getLogger("transformers.modeling_utils")

    def keep(record: logging.LogRecord) -> bool:
        return "LOAD REPORT" not in record.getMessage()

    logger.addFilter(keep)
    try:
        yield
    finally:
        logger.removeFilter(keep)


def _damage(folder: Path) -> str | None:
    """Return what is wrong with the weights' files of a local folder, if anything is."""
    file, has_index = WEIGHTS, (folder / INDEX).exists()
    if not has_index and not (folder / WEIGHTS).exists():
        has_others = any(folder.glob("*.safetensors")) or any(folder.glob("*.bin"))
        return None if has_others or not (folder / "config.json").exists() else f"has no weights ({WEIGHTS})"
    try:
        files = [WEIGHTS]
        if not (folder / WEIGHTS).exists():
            file = INDEX
            files = sorted({*json.loads((folder / INDEX).read_text("utf-8"))["weight_map"].values()})
        for file in files:
            with safe_open(folder / file, "pt"):
                pass
    except (SafetensorError, OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        of = f" of {INDEX}" if has_index and file != INDEX else ""
        return f"has a damaged or missing file ({file}{of}: {type(error).__name__}: {error})"
    return None


def _check_weights(
    model: PreTrainedModel, source: str | PathLike | None, found: dict[str, Any], any_size: bool, hub: dict[str, Any]
) -> None:
    missing, unexpected = set(found["missing_keys"]), set(found["unexpected_keys"])
    if source is not None and any(name.startswith("bottlenecks.") for name in missing | unexpected):
        saved = PreTrainedConfig.get_config_dict(source, **hub)[0].get("bottleneck_layers") or ()
        ours = model.config.bottleneck_layers
        missing = _without_layers(missing, {*ours} - {*saved})
        unexpected = _without_layers(unexpected, {*saved} - {*ours})
    file = INDEX if source is not None and Path(source, hub.get("subfolder", ""), INDEX).exists() else WEIGHTS
    foreign = "weights and config.json belong to different models"
    if missing:
        fault = f"{file} lacks {_told(missing)} of the solver, which would be random numbers"
    elif unexpected:
        fault = f"{file} has {_told(unexpected)} for which the solver of config.json has no place; {foreign}"
    elif found["mismatched_keys"] and not any_size:
        name, stored, own = min(found["mismatched_keys"])
        fault = f"{name} is {tuple(stored)} in {file} and {tuple(own)} by config.json; {foreign}"
    else:
        return
    raise SolverFolderError(f"{source}: {fault}: fetch or train it again.")


def _without_layers(names: set[str], layers: set[int]) -> set[str]:
    return {name for name in names if not name.startswith(tuple(f"bottlenecks.{layer}." for layer in layers))}


def _told(names: set[str]) -> str:
    shown = [*sorted(names)[:3], *(["..."] if len(names) > 3 else [])]
    return f"{len(names)} weight{'s' * (len(names) > 1)} ({', '.join(shown)})"
