"""Loading of solvers that refuses what is not whole: a solver with a few random weights answers like any other."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from os import PathLike
from pathlib import Path
from typing import Any

from safetensors import SafetensorError, safe_open
from transformers import PreTrainedConfig, PreTrainedModel

from ...data.downloads import hub_options, note_download
from .configuration_mwp_solver import MwpSolverConfig
from .solver_folder_error import SolverFolderError


WEIGHTS, INDEX = "model.safetensors", "model.safetensors.index.json"
SHOWN = 3


def load_whole(load: Callable, source: str | PathLike | None, *args, **kwargs) -> Any:
    """
    Loads a solver by `load`, the `from_pretrained` of `PreTrainedModel`; raises `SolverFolderError` if the model is of
    another type, a file is damaged or missing, or weights are missing, have no place, or are of another shape (which
    `ignore_mismatched_sizes` allows). New bottleneck networks may be missing, and those that the config given has no
    more may be left over.
    """
    with_info = kwargs.pop("output_loading_info", False)
    any_size = kwargs.pop("ignore_mismatched_sizes", False)
    hub = hub_options(kwargs)
    if source is not None and not isinstance(kwargs.get("config"), PreTrainedConfig):
        _check_type(kwargs.get("config") or source, hub)
    try:
        with _without_report():
            model, found = load(source, *args, ignore_mismatched_sizes=True, output_loading_info=True, **kwargs)
    # What damaged files raise differs: OSError, ValueError, TypeError, KeyError, ...
    except Exception as error:
        damage = _damage(Path(source, kwargs.get("subfolder", ""))) if source is not None else None
        if damage is None and isinstance(error, SafetensorError):
            damage = f"has a damaged file ({error})"
        if damage is None:
            raise
        raise SolverFolderError(f"{source} {damage}: fetch or train it again.") from error
    _check_weights(model, source, found, any_size, hub)
    note_download(model, hub)
    return (model, found) if with_info else model


def _check_type(source: str | PathLike, hub: dict[str, Any]) -> None:
    found = PreTrainedConfig.get_config_dict(source, **hub)[0].get("model_type")
    if found != MwpSolverConfig.model_type:
        raise SolverFolderError(
            f"{source} holds a model of type {found!r}, but a solver (type {MwpSolverConfig.model_type!r}) is needed; "
            f"`hf-mwp train --encoder {source}` makes one of an encoder."
        )


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
    """What is wrong with the weights' files of a local folder, if anything is."""
    if not folder.is_dir():
        return None
    if (folder / WEIGHTS).exists():
        files = [WEIGHTS]
    elif (folder / INDEX).exists():
        try:
            files = sorted(set(json.loads((folder / INDEX).read_text("utf-8"))["weight_map"].values()))
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            return f"has a damaged file ({INDEX}: {type(error).__name__}: {error})"
    elif any(folder.glob("*.safetensors")) or any(folder.glob("*.bin")) or not (folder / "config.json").exists():
        return None
    else:
        return f"has no weights ({WEIGHTS})"
    for file in files:
        if not (folder / file).exists():
            return f"has no {file}, which {INDEX} names"
        try:
            with safe_open(folder / file, "pt"):
                pass
        except SafetensorError as error:
            return f"has a damaged file ({file}: {error})"
    return None


def _check_weights(
    model: PreTrainedModel, source: str | PathLike | None, found: dict[str, Any], any_size: bool, hub: dict[str, Any]
) -> None:
    missing, unexpected = set(found["missing_keys"]), set(found["unexpected_keys"])
    if source is not None and any(name.startswith("bottlenecks.") for name in missing | unexpected):
        saved = PreTrainedConfig.get_config_dict(source, **hub)[0].get("bottleneck_layers") or ()
        missing = _without_layers(missing, set(model.config.bottleneck_layers) - set(saved))
        unexpected = _without_layers(unexpected, set(saved) - set(model.config.bottleneck_layers))
    file = INDEX if source is not None and Path(source, hub.get("subfolder", ""), INDEX).exists() else WEIGHTS
    others = "weights and config.json belong to different models: fetch or train it again."
    if missing:
        raise SolverFolderError(
            f"{source}: {file} lacks {_count(missing)} of the solver ({_names(missing)}), which would be random "
            "numbers: fetch or train it again."
        )
    if unexpected:
        raise SolverFolderError(
            f"{source}: {file} has {_count(unexpected)} ({_names(unexpected)}) for which the solver of config.json "
            f"has no place; {others}"
        )
    if found["mismatched_keys"] and not any_size:
        shapes = [
            f"{name} is {tuple(stored)} in {file} and {tuple(own)} by config.json"
            for name, stored, own in sorted(found["mismatched_keys"])
        ]
        more = f", and {len(shapes) - 1} more" if len(shapes) > 1 else ""
        raise SolverFolderError(f"{source}: {shapes[0]}{more}; {others}")


def _without_layers(names: Iterable[str], layers: set[int]) -> set[str]:
    return {name for name in names if not name.startswith(tuple(f"bottlenecks.{layer}." for layer in layers))}


def _count(names: set[str]) -> str:
    return "1 weight" if len(names) == 1 else f"{len(names)} weights"


def _names(names: set[str]) -> str:
    return ", ".join([*sorted(names)[:SHOWN], *(["..."] if len(names) > SHOWN else [])])
