"""What makes a teacher's outputs what they are, as hashes."""

from __future__ import annotations

import functools
import hashlib
import inspect
import json
from array import array
from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from torch import nn


# Fields of a config that say where a model came from and not what it computes.
IRRELEVANT = {"_name_or_path", "transformers_version", "architectures", "dtype", "torch_dtype", "use_cache"}
DEPTH = 4


def fingerprint(parts: Mapping[str, Any]) -> str:
    """Hash, 32 hexadecimal digits, of something that JSON can hold."""
    text = json.dumps(parts, sort_keys=True, ensure_ascii=False, default=str)
    return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()


def hash_model(model: nn.Module) -> str:
    """Hash of a model's class, config, parameters and buffers; about a second for a gigabyte."""
    digest = hashlib.blake2b(digest_size=16)
    config = getattr(model, "config", None)
    fields = config.to_dict() if hasattr(config, "to_dict") else {}
    digest.update(fingerprint({"class": _name(type(model)), "config": _without(fields)}).encode())
    for name, value in sorted({**dict(model.named_parameters()), **dict(model.named_buffers())}.items()):
        value = value.detach().cpu().contiguous()
        digest.update(f"{name} {value.dtype} {tuple(value.shape)} ".encode())
        digest.update(value.flatten().view(torch.uint8).numpy().data if value.numel() else b"")
    return digest.hexdigest()


def _without(fields: Any) -> Any:
    if isinstance(fields, Mapping):
        return {str(name): _without(value) for name, value in fields.items() if name not in IRRELEVANT}
    return fields


def hash_processing(processing: Any) -> str | None:
    """Hash of how a processor or tokenizer turns texts into ids: its vocabulary and its settings."""
    if processing is None:
        return None
    parts: dict[str, Any] = {"class": _name(type(processing))}
    tokenizer = getattr(processing, "tokenizer", processing)
    if hasattr(tokenizer, "get_vocab"):
        parts["tokens"] = sorted(tokenizer.get_vocab().items())
    if tokenizer is not processing:
        parts["settings"] = _settings(processing, 1)
    return fingerprint(parts)


def describe_collator(collator: Any) -> Any:
    """
    What a collator does, as far as it shows: the class and the simple settings of an object, and of what it holds; the
    name and the code of a function.
    """
    return _describe(collator, DEPTH)


def _describe(value: Any, depth: int) -> Any:
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, functools.partial):
        return ["partial", _describe(value.func, depth), _describe(list(value.args), depth), _settings(value, depth)]
    if inspect.isroutine(value):
        code = getattr(value, "__code__", None)
        return [_name(value), None if code is None else hashlib.blake2b(code.co_code, digest_size=8).hexdigest()]
    if isinstance(value, list | tuple):
        return [_describe(each, depth) for each in value]
    if isinstance(value, Mapping):
        return {str(name): _describe(each, depth) for name, each in value.items()}
    if hasattr(value, "get_vocab") or hasattr(getattr(value, "tokenizer", None), "get_vocab"):
        return hash_processing(value)
    if isinstance(value, nn.Module | torch.Generator) or depth == 0:
        return _name(type(value))
    return [_name(type(value)), _settings(value, depth - 1)]


def _settings(value: Any, depth: int) -> dict[str, Any]:
    settings = value.keywords if isinstance(value, functools.partial) else getattr(value, "__dict__", {})
    return {
        name: _describe(each, depth) for name, each in sorted(settings.items()) if name not in ("model", "tokenizer")
    }


def _name(value: Any) -> str:
    return f"{value.__module__}.{getattr(value, '__qualname__', value)}"


def row_key(row: Any) -> tuple[int, int]:
    """
    128 bits of a hash of a row as a collator receives it; lists, arrays and tensors of the same numbers are the same.

    Raises:
        TypeError: the row holds something that cannot be recognised again.
    """
    digest = hashlib.blake2b(_encode(row), digest_size=16).digest()
    return int.from_bytes(digest[:8], "little"), int.from_bytes(digest[8:], "little")


def _encode(value: Any) -> bytes:
    if isinstance(value, list | tuple):
        try:
            data = b"q" + array("q", value).tobytes()
        except (TypeError, OverflowError):
            data = b"l" + b"".join(map(_encode, value))
    elif isinstance(value, np.ndarray) and value.dtype.kind == "f" and value.ndim > 1:
        data = f"a{value.dtype}{value.shape}".encode() + value.tobytes()
    elif isinstance(value, np.ndarray | np.generic | torch.Tensor):
        return _encode(value.tolist())
    elif isinstance(value, Mapping):
        data = b"d" + b"".join(_encode(str(name)) + _encode(value[name]) for name in sorted(value, key=str))
    elif value is None or isinstance(value, bool | int | float | str):
        data = f"{type(value).__name__[0]}{value}".encode()
    else:
        raise TypeError(
            f"A row holds a `{type(value).__name__}`, which the teacher cache cannot recognise again: give rows of "
            "numbers, texts, lists, arrays or tensors, or set `cache_teacher_outputs=False`."
        )
    return len(data).to_bytes(8, "little") + data


__all__ = ["describe_collator", "fingerprint", "hash_model", "hash_processing", "row_key"]
