"""Fingerprints of models, processors and rows, and of collators, objectives and scores."""

import dis
import functools
import hashlib
import inspect
from array import array
from collections.abc import Mapping
from types import CodeType, FunctionType, ModuleType
from typing import Any

import numpy as np
import torch
from torch import nn

from ..data.batches.mwp_processor import tokenizer_settings
from ..store.finished_folder import digest_of


# Config fields that do not change what a model computes.
IRRELEVANT = {"_name_or_path", "transformers_version", "architectures", "dtype", "torch_dtype", "use_cache"}
DEPTH = 4  # maximum depth of nested objects
PLAIN = (bytes, complex, slice, range, torch.dtype, torch.device)  # described by their `repr`
# Types of module globals that are part of a function's description, besides callables. Other objects, such as loggers,
# may change without changing what the function computes.
CONSTANTS = (bool, int, float, str, list, tuple, set, frozenset, Mapping, np.ndarray, np.generic, torch.Tensor, *PLAIN)

# Names under which the body of a class stores its docstring and its place in the source.
METADATA = {"__doc__", "__firstlineno__", "__static_attributes__"}


def hash_model(model: nn.Module) -> str:
    """Return a hash of a model's class, config, parameters and buffers. Takes about a second per gigabyte."""
    digest = hashlib.blake2b(digest_size=16)
    config = getattr(model, "config", None)
    fields = config.to_dict() if hasattr(config, "to_dict") else {}
    digest.update(digest_of({"class": _name(type(model)), "config": _without(fields)}).encode())
    for name, value in sorted({**dict(model.named_parameters()), **dict(model.named_buffers())}.items()):
        digest.update(f"{name} {value.dtype} {tuple(value.shape)} ".encode())
        digest.update(_content(value))
    return digest.hexdigest()


def _content(value: torch.Tensor) -> Any:
    """Return the bytes of a tensor's numbers."""
    return value.detach().cpu().contiguous().flatten().view(torch.uint8).numpy().data if value.numel() else b""


def _without(fields: Any) -> Any:
    if isinstance(fields, Mapping):
        return {str(name): _without(value) for name, value in fields.items() if name not in IRRELEVANT}
    return fields


def hash_processing(processing: Any) -> str | None:
    """Return a hash of the vocabulary and settings with which a processor or tokenizer encodes texts."""
    if processing is None:
        return None
    parts: dict[str, Any] = {"class": _name(type(processing))}
    tokenizer = getattr(processing, "tokenizer", processing)
    if hasattr(tokenizer, "get_vocab"):
        parts["tokens"] = sorted(tokenizer.get_vocab().items())
        parts["tokenizer"] = tokenizer_settings(tokenizer)
    if tokenizer is not processing:
        parts["settings"] = _settings(processing, 1)
    return digest_of(parts)


def describe(value: Any) -> Any:
    """
    Return a description of what an object (collator, objective, score) computes, the same in every process. An object
    is described by its class, methods and plain settings; a function by its code, constants, defaults, enclosed
    variables and the functions that it calls.
    """
    return _describe(value, DEPTH)


def _describe(value: Any, depth: int) -> Any:
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, PLAIN):
        return repr(value)
    if isinstance(value, functools.partial):
        return ["partial", *(_describe(each, depth) for each in (value.func, value.args, value.keywords))]
    if isinstance(value, FunctionType):
        return [_name(value), digest_of(_function_parts(value, depth))]
    if inspect.ismethod(value):
        return [_describe(value.__func__, depth), _describe(value.__self__, min(depth, 1))]
    if isinstance(value, type) or inspect.isroutine(value):
        # `functools.lru_cache` returns an object that is not a function, but refers to the wrapped function.
        return [_name(value), _describe(value.__wrapped__, depth)] if hasattr(value, "__wrapped__") else _name(value)
    if isinstance(value, ModuleType):
        return value.__name__
    if isinstance(value, CodeType):
        return _instructions(value, depth)
    if isinstance(value, list | tuple):
        return [_describe(each, depth) for each in value]
    if isinstance(value, set | frozenset):
        return sorted((_describe(each, depth) for each in value), key=str)
    if isinstance(value, Mapping):
        return {str(name): _describe(each, depth) for name, each in value.items()}
    is_array = isinstance(value, np.ndarray | np.generic) and not value.dtype.hasobject
    if is_array or isinstance(value, torch.Tensor):
        content = value.tobytes() if is_array else _content(value)
        return [str(value.dtype), value.shape, hashlib.blake2b(content, digest_size=16).hexdigest()]
    if hasattr(value, "get_vocab"):
        return hash_processing(value)
    has_tokenizer = hasattr(getattr(value, "tokenizer", None), "get_vocab")
    if not has_tokenizer and (isinstance(value, nn.Module | torch.Generator) or depth == 0):
        return _name(type(value))
    inner = max(depth - 1, 0)
    parts = [hash_processing(value)] if has_tokenizer else [_name(type(value)), _settings(value, inner)]
    return [*parts, digest_of(_methods(type(value), inner))] if callable(value) else parts


def _function_parts(function: FunctionType, depth: int) -> dict[str, Any]:
    """Return the descriptions of a function's code, defaults, globals and enclosed variables."""
    code, module, inner = function.__code__, function.__globals__, max(depth - 1, 0)

    def held(value: Any) -> Any:
        # Describe only the own settings of an object: a trainer, for example, refers to everything.
        return _describe(value, inner if inspect.isroutine(value) else min(inner, 1))

    parts = {"code": held(code), "defaults": held(function.__defaults__), "keywords": held(function.__kwdefaults__)}
    if depth:
        named = {name: module[name] for name in _names(code) if name in module}
        parts["globals"] = {
            name: held(each) for name, each in named.items() if callable(each) or isinstance(each, CONSTANTS)
        }
        parts["enclosed"] = [held(_cell_content(cell)) for cell in function.__closure__ or ()]
    return parts


def _instructions(code: CodeType, depth: int) -> list[Any]:
    """Return the instructions of code with the names and constants that they use, which excludes docstrings."""
    found: list[Any] = []
    for each in dis.get_instructions(code):
        if each.opname == "STORE_NAME" and each.argval in METADATA:
            found.pop()  # the constant that the body of a class stores under this name
        elif each.opcode in dis.hasconst:
            found.append([each.opname, _describe(each.argval, depth)])
        else:
            found.append([each.opname, each.argval if each.opcode in dis.hasname else each.arg])
    return found


def _names(code: CodeType) -> set[str]:
    """Return the names of globals and attributes that code and its inner functions use."""
    inner = [_names(each) for each in code.co_consts if isinstance(each, CodeType)]
    return set(code.co_names).union(*inner) - METADATA


def _cell_content(cell: Any) -> Any:
    try:
        return cell.cell_contents
    except ValueError:
        return None  # not assigned yet


def _methods(kind: type, depth: int) -> dict[str, Any]:
    functions = {
        f"{_name(base)}.{name}": getattr(each, "__func__", each)
        for base in kind.__mro__
        for name, each in vars(base).items()
    }
    return {name: _describe(each, depth) for name, each in functions.items() if isinstance(each, FunctionType)}


def _settings(value: Any, depth: int) -> dict[str, Any]:
    settings = sorted(getattr(value, "__dict__", {}).items())
    # State from earlier calls does not change what an object computes.
    left_out = ("model", "tokenizer", *getattr(type(value), "not_settings", ()))
    return {name: _describe(each, depth) for name, each in settings if name not in left_out}


def _name(value: Any) -> str:
    return f"{getattr(value, '__module__', None)}.{getattr(value, '__qualname__', type(value).__qualname__)}"


def row_key(row: Any) -> bytes:
    """
    Return a 16-byte hash of a row as a collator receives it. Lists, arrays and tensors of the same numbers have the
    same hash. Raises `TypeError` for values of other types.
    """
    return hashlib.blake2b(_encode(row), digest_size=16).digest()


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
            f"A row contains a `{type(value).__name__}`, which the teacher cache cannot hash. Use numbers, texts, "
            "lists, arrays or tensors, or set `cache_teacher_outputs=False`."
        )
    return len(data).to_bytes(8, "little") + data
