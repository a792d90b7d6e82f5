"""Fingerprints of models, processors and rows, and of collators, objectives and scores."""

import functools
import hashlib
import inspect
import json
import sys
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

import numpy as np
import torch
from torch import nn
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from hf_mwp.utils.job import digest_of


# Config fields that do not change what a model computes.
IRRELEVANT = {"_name_or_path", "transformers_version", "architectures", "dtype", "torch_dtype", "use_cache"}
DEPTH = 4  # maximum depth of nested objects


def hash_model(model: nn.Module) -> str:
    """Return a hash of a model's class, config, parameters and buffers. Takes about a second per gigabyte."""
    digest = hashlib.blake2b(digest_size=16)
    fields = model.config.to_dict() if hasattr(model, "config") else {}
    digest.update(digest_of({"class": _name(type(model)), "config": _without(fields)}).encode())
    tensors = dict(model.named_parameters()) | dict(model.named_buffers())
    for name, value in sorted(tensors.items()):
        digest.update(f"{name} {value.dtype} {tuple(value.shape)} ".encode())
        digest.update(_content(value))
    return digest.hexdigest()


def _content(value: torch.Tensor) -> Any:
    """Return the bytes of a tensor's numbers."""
    if not value.numel():
        return b""
    return value.detach().cpu().contiguous().flatten().view(torch.uint8).numpy().data


def _without(fields: Any) -> Any:
    if isinstance(fields, Mapping):
        return {str(name): _without(value) for name, value in fields.items() if name not in IRRELEVANT}
    return fields


def hash_processing(processing: Any) -> str | None:
    """Return a hash of the vocabulary and settings with which a processor or tokenizer encodes texts."""
    if processing is None:
        return None
    description = {"class": _name(type(processing))}
    tokenizer = getattr(processing, "tokenizer", processing)
    if hasattr(tokenizer, "get_vocab"):
        description["tokens"] = sorted(tokenizer.get_vocab().items())
        description["tokenizer"] = tokenizer_settings(tokenizer)
    if tokenizer is not processing:
        description["settings"] = _settings(processing, 1)
    return digest_of(description)


def tokenizer_settings(tokenizer: PreTrainedTokenizerBase) -> dict[str, Any]:
    """Return the settings of a tokenizer as a dictionary, without the truncation and padding of the last call."""
    backend = getattr(tokenizer, "backend_tokenizer", tokenizer)
    if not hasattr(backend, "to_str"):
        settings = getattr(tokenizer, "init_kwargs", {})
        return {name: str(value) for name, value in settings.items() if name != "name_or_path"}
    return {**json.loads(backend.to_str()), "truncation": None, "padding": None}


def describe(value: Any, depth: int = DEPTH) -> Any:
    """Return a description of what an object (collator, objective, score) computes, the same in every process: the
    name of its class or function, the version of its package, and its settings or enclosed variables."""
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, list | tuple):
        return [describe(item, depth) for item in value]
    if isinstance(value, set | frozenset):
        return sorted((describe(item, depth) for item in value), key=str)
    if isinstance(value, Mapping):
        return {str(name): describe(item, depth) for name, item in value.items()}
    if isinstance(value, np.ndarray | torch.Tensor):
        values = torch.as_tensor(value)
        return [str(values.dtype), list(values.shape), hashlib.blake2b(_content(values), digest_size=16).hexdigest()]
    if isinstance(value, functools.partial):
        return describe([value.func, value.args, value.keywords], depth)
    if inspect.ismethod(value):
        return describe([value.__func__, value.__self__], depth)
    if isinstance(value, type) or inspect.isroutine(value):
        value = inspect.unwrap(value)
        enclosed = []
        if depth:
            enclosed += [getattr(value, "__defaults__", None), getattr(value, "__kwdefaults__", None)]
            enclosed += map(_cell_content, getattr(value, "__closure__", None) or ())
        # Describe only the own settings of an enclosed object: a trainer, for example, refers to everything.
        return [_name(value), _version(value), describe(enclosed, min(depth - 1, 1))]
    value_class = type(value)
    if hasattr(getattr(value, "tokenizer", value), "get_vocab"):
        return [hash_processing(value), _version(value_class)]
    if depth == 0 or isinstance(value, PreTrainedModel | torch.Generator):
        return _name(value_class)
    return [_name(value_class), list(map(_version, value_class.__mro__)), _settings(value, depth - 1)]


@functools.cache
def _version(definition: Any) -> str | None:
    """Return the version of the package of a class or function. Outside packages, return its module's source (in a
    notebook, the definition's), which has no version."""
    module = sys.modules.get(definition.__module__)
    package = sys.modules.get(str(definition.__module__).partition(".")[0])
    if hasattr(package, "__version__"):
        return str(package.__version__)
    for source in (module, definition):
        with suppress(OSError, TypeError):
            return digest_of(inspect.getsource(source))
    return None


def _cell_content(cell: Any) -> Any:
    try:
        return cell.cell_contents
    except ValueError:
        return None  # not assigned yet


def _settings(value: Any, depth: int) -> dict[str, Any]:
    # State from earlier calls does not change what an object computes; modules keep their hooks in private attributes.
    ignored = ("model", "tokenizer", *getattr(type(value), "not_settings", ()))
    settings = {}
    for name, setting in sorted(getattr(value, "__dict__", {}).items()):
        is_hook = isinstance(value, nn.Module) and name.startswith("_")
        if name not in ignored and not is_hook:
            settings[name] = describe(setting, depth)
    return settings


def _name(value: Any) -> str:
    module = getattr(value, "__module__", None)
    name = getattr(value, "__qualname__", type(value).__qualname__)
    return f"{module}.{name}"


def row_key(row: Any) -> bytes:
    """Return a 16-byte hash of a row, equal for lists, arrays and tensors. Raises `TypeError` for other types."""
    text = json.dumps(row, sort_keys=True, default=_as_list)
    return hashlib.blake2b(text.encode(), digest_size=16).digest()


def _as_list(value: Any) -> Any:
    if isinstance(value, np.ndarray | np.generic | torch.Tensor):
        return value.tolist()
    if isinstance(value, Mapping):
        return dict(value)
    raise TypeError(
        f"A row contains a `{type(value).__name__}`, which the teacher cache cannot hash. Use numbers, texts, lists, "
        "arrays or tensors, or set `cache_teacher_outputs=False`."
    )
