"""Type checks of arguments and fields by their annotations."""

import functools
import inspect
import itertools
import math
import os
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import fields
from numbers import Integral, Real
from types import UnionType
from typing import Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints


Target = TypeVar("Target", bound=Callable)

# Names of types in messages; any other class is named by its own name.
DESCRIPTIONS = {
    bool: "True or False",
    int: "a whole number",
    float: "a number",
    str: "a string",
    type(None): "None",
    list: "a list",
    tuple: "a tuple",
    set: "a set",
    dict: "a dictionary",
    Sequence: "a list",
    Mapping: "a mapping",
    Iterable: "a list or another iterable",
    Collection: "a collection",
    Callable: "a function",
    type: "a class",
}
PLURALS = {bool: "booleans", int: "whole numbers", float: "numbers", str: "strings", Mapping: "mappings"}
PLAIN_TYPES = frozenset({bool, int, float, str, type(None)})


def checked(target: Target) -> Target:
    """
    Decorate a function, or a class with its own `__init__`, so that its arguments are checked against their
    annotations. The default of a parameter is always accepted, and `*args` and `**kwargs` are not checked. The
    decorated function raises `TypeError` with the name of the parameter for a wrong type, and `ValueError` for NaN and
    for a string that is not among the values of a `Literal`.

    `huggingface_hub.dataclasses.strict` cannot be used here: its errors are neither `TypeError` nor `ValueError`, it
    refuses a whole number where a `float` is expected, and it supports no functions, iterables and mappings.
    """
    if inspect.isclass(target):
        target.__init__ = checked(target.__init__)
        return target
    variable = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    parameters = inspect.signature(target).parameters.values()
    defaults = {parameter.name: parameter.default for parameter in parameters if parameter.kind not in variable}
    positional = [parameter.name for parameter in parameters if parameter.kind == parameter.POSITIONAL_OR_KEYWORD]

    @functools.wraps(target)
    def wrapper(*args, **kwargs):
        hints = _hints_of(target)
        arguments = [*zip(positional, args, strict=False), *kwargs.items()]
        # Missing and unknown arguments are left to Python, which names them.
        for name, value in arguments:
            if name in defaults and value is not defaults[name]:
                check_type(name, value, hints.get(name, Any))
        return target(*args, **kwargs)

    return wrapper


def check_fields(options: Any, library_class: type | None = None) -> None:
    """Check the fields of a dataclass like the arguments of a [`checked`] function, and accept a path as a string. Of
    the fields of `library_class`, a base class from another library, only booleans, numbers and strings are checked,
    because the library accepts more than its annotations say."""
    hints = _hints_of(type(options))
    library_hints = {}
    if library_class is not None:
        library_hints = _hints_of(library_class)
    for field in fields(options):
        value = getattr(options, field.name)
        hint = hints[field.name]
        alternatives = _alternatives(hint)
        is_unchecked = field.name in library_hints and not alternatives <= PLAIN_TYPES
        is_path = str in alternatives and isinstance(value, os.PathLike)
        if value is not field.default and not is_unchecked and not is_path:
            check_type(field.name, value, hint)


def check_type(name: str, value: Any, hint: Any) -> None:
    """Raise `TypeError` or `ValueError` with `name` unless a value has the annotated type."""
    if type(value) is hint and hint is not float:
        return
    alternatives = _alternatives(hint)
    if any(_fits(value, alternative) for alternative in alternatives):
        return
    # The kinds of containers that the value may be, whatever its items.
    containers = []
    for alternative in alternatives:
        if get_args(alternative) and _is_a(value, get_origin(alternative)):
            containers.append(alternative)
    if len(containers) == 1:
        # The message names the wrong item.
        for item_name, item, item_hint in _items(name, value, containers[0]):
            check_type(item_name, item, item_hint)
    descriptions = sorted(_describe(alternative) for alternative in alternatives - {type(None)})
    if type(None) in alternatives:
        descriptions.append("None")
    error_class = TypeError
    is_text_choice = isinstance(value, str) and Literal in map(get_origin, alternatives)
    if is_text_choice or (_is_nan(value) and float in alternatives):
        error_class = ValueError
    raise error_class(f"`{name}` must be {' or '.join(descriptions)}, got {_shorten(value)}.")


@functools.cache
def _hints_of(target: Any) -> dict[str, Any]:
    """Return the annotations of a function or class. A class that is imported only for type checkers is replaced by a
    [`_NamedClass`]."""
    unknown = {}
    while True:
        try:
            return get_type_hints(target, localns=unknown)
        except NameError as error:
            unknown[error.name] = _NamedClass(error.name, (), {})


class _NamedClass(type):
    """Type of stand-ins for classes that are not imported. Instances of any class with the same name fit."""

    def __instancecheck__(cls, value: Any) -> bool:
        return cls.__name__ in [base.__name__ for base in type(value).__mro__]


@functools.cache
def _alternatives(hint: Any) -> frozenset:
    """Return the members of a union, or the annotation itself."""
    if get_origin(hint) in (Union, UnionType):
        return frozenset(get_args(hint))
    return frozenset({hint})


def _fits(value: Any, hint: Any) -> bool:
    """Return whether a value and its items have the annotated type."""
    origin = get_origin(hint)
    if origin is None:
        return _is_a(value, hint)
    if origin in (Union, UnionType):
        return any(_fits(value, alternative) for alternative in get_args(hint))
    if origin is Literal:
        return isinstance(value, str | int | None) and value in get_args(hint)
    if origin is type:
        return isinstance(value, type)
    return _is_a(value, origin) and all(_fits(item, item_hint) for _, item, item_hint in _items("", value, hint))


def _is_a(value: Any, kind: Any) -> bool:
    """Return whether a value has a type, without looking at its items."""
    if not isinstance(kind, type) or kind in (Any, object):
        # A variable for a type accepts anything, too.
        return True
    if type(value) is kind and kind is not float:
        return True
    if kind is bool:
        # Also the booleans of NumPy, which is not imported here.
        return type(value).__name__ in ("bool", "bool_")
    if kind in (int, float):
        abstract_type = Integral if kind is int else Real
        return isinstance(value, abstract_type) and not isinstance(value, bool) and not _is_nan(value)
    if kind in (Sequence, Iterable, Collection):
        # Columns of datasets and tensors are not registered as sequences. A string is no list of strings, and a
        # dictionary no list of its keys.
        if isinstance(value, str | bytes | Mapping):
            return False
        return isinstance(value, kind) or (hasattr(value, "__len__") and hasattr(value, "__getitem__"))
    if kind is not type(None) and issubclass(kind, os.PathLike):
        return isinstance(value, os.PathLike)
    return isinstance(_unwrapped(value, kind), kind)


def _unwrapped(value: Any, kind: type) -> Any:
    """Return the model in a wrapper that behaves like it (`torch.compile`, PEFT), unless the wrapper is a `kind`."""
    while not isinstance(value, kind) and hasattr(value, "forward"):
        inner = getattr(value, "_orig_mod", None)
        if inner is None and hasattr(value, "get_base_model"):
            inner = value.get_base_model()
        if inner is None:
            break
        value = inner
    return value


def _items(name: str, value: Any, hint: Any) -> Iterator[tuple[str, Any, Any]]:
    """Yield name, value and annotation of the items of a list, tuple, set or dictionary. Other containers may be slow
    to read, or can be read only once."""
    arguments = get_args(hint)
    if isinstance(value, Mapping):
        if isinstance(value, dict) and len(arguments) == 2:
            for key, item in value.items():
                yield f"{name}: key {key!r}", key, arguments[0]
                yield f"{name}[{key!r}]", item, arguments[1]
    elif isinstance(value, list | tuple | set | frozenset) and arguments and get_origin(hint) is not Callable:
        is_fixed = get_origin(hint) is tuple and arguments[-1] is not Ellipsis
        hints = arguments if is_fixed else itertools.repeat(arguments[0])
        for index, (item, item_hint) in enumerate(zip(value, hints, strict=False)):
            yield f"{name}[{index}]", item, item_hint


def _describe(hint: Any) -> str:
    """Return the description of a type in a message."""
    origin = get_origin(hint)
    arguments = get_args(hint)
    if origin is Literal:
        return "one of " + ", ".join(map(repr, arguments))
    if origin in (Union, UnionType):
        return " or ".join(map(_describe, arguments))
    plain_type = origin or hint
    if plain_type in (list, tuple, set, Sequence, Iterable, Collection) and arguments:
        items = [PLURALS.get(get_origin(item) or item) for item in _alternatives(arguments[0])]
        if None not in items:
            return f"{DESCRIPTIONS[plain_type]} of {' or '.join(sorted(items))}"
    if plain_type in DESCRIPTIONS:
        return DESCRIPTIONS[plain_type]
    if isinstance(plain_type, type) and issubclass(plain_type, os.PathLike):
        return "a path"
    return f"a `{getattr(plain_type, '__name__', plain_type)}`"


def _is_nan(value: Any) -> bool:
    return isinstance(value, float) and math.isnan(value)


def _shorten(value: Any) -> str:
    shortened = f"{value!r:.80}"
    return shortened if isinstance(value, str | type | None) else f"{type(value).__name__} {shortened}"
