"""Flags from the fields of dataclasses, without an import of Transformers."""

from __future__ import annotations

import argparse
import dataclasses
import difflib
import types
from collections.abc import Callable, Mapping, Sequence
from enum import Enum
from typing import Any, NoReturn, Union, get_args, get_origin, get_type_hints

from ..usage_error import UsageError
from .option import OWN_KEYS, default_of


TRUE = ("true", "yes", "t", "y", "1")
FALSE = ("false", "no", "f", "n", "0")
Owners = Callable[[str], Sequence[str]]


class OptionParser(argparse.ArgumentParser):
    """
    An argument parser with a flag for each field of dataclasses, like `transformers.HfArgumentParser`, whose import
    takes longer than to show a help. With `common`, only the fields declared `common=True`, or all fields of a
    dataclass that has none.
    """

    def __init__(
        self,
        command: str,
        description: str,
        dataclass_types: Sequence[type],
        common: bool = False,
        epilog: str | None = None,
    ) -> None:
        super().__init__(
            prog=f"hf-mwp {command}",
            usage=f"hf-mwp {command} [--config FILE] [--option VALUE ...]",
            description=description,
            epilog=epilog,
            allow_abbrev=False,
            add_help=False,
        )
        self.command, self.dataclass_types = command, list(dataclass_types)
        for each in self.dataclass_types:
            title = getattr(each, "_argument_group_name", None)
            group = self if title is None else self.add_argument_group(title)
            hints, fields = get_type_hints(each), [field for field in dataclasses.fields(each) if field.init]
            marked = [field for field in fields if field.metadata.get("common")]
            for field in marked if common and marked else fields:
                _add_option(group, field, hints[field.name])

    def error(self, message: str) -> NoReturn:
        """Raise `UsageError` instead of printing all options."""
        raise UsageError(f"{self.command}: {message}.")

    def convert(self, content: Any, source: str, owners: Owners = lambda name: ()) -> dict[str, Any]:
        """Return options given as a mapping, as their flags would give them; `UsageError` names source and key."""
        if not isinstance(content, Mapping | None):
            kind = type(content).__name__
            raise UsageError(f"{source} must hold a mapping of options (`key: value` lines), not a {kind}.")
        actions = {action.dest: action for action in reversed(self._actions) if action.dest != "config"}
        values = {}
        for key, value in (content or {}).items():
            name = str(key).replace("-", "_")
            if name not in actions:
                raise UsageError(f"{source}: unknown key {key!r}.{hint(name, self, owners)}")
            try:
                values[name] = self._value_of(actions[name], value)
            except argparse.ArgumentError as error:
                raise UsageError(f"{source}: key {key!r}: {error.message}") from error
        return values

    def _value_of(self, action: argparse.Action, value: Any) -> Any:
        if value is None:
            if not action.optional and action.default is not None:
                raise argparse.ArgumentError(action, "must have a value")
            return None
        if action.nargs != "+" and isinstance(value, list | dict):
            if action.type is not str:
                raise argparse.ArgumentError(action, f"takes one value, not a {type(value).__name__}")
            return value
        values = [self._get_value(action, str(item)) for item in (value if isinstance(value, list) else [value])]
        for each in values:
            self._check_value(action, each)
        if action.nargs != "+":
            return values[0]
        return OneOrMore.joined(values) if isinstance(action, OneOrMore) else values


class OneOrMore(argparse.Action):
    """Takes one value or several: one is kept as it is, so that such an option's record says what was given."""

    def __call__(self, parser, namespace, values, option_string=None):
        setattr(namespace, self.dest, self.joined(values))

    @staticmethod
    def joined(values: list) -> Any:
        """Return one value as it is, several as a list."""
        return values[0] if len(values) == 1 else values


def to_bool(text: str) -> bool:
    """Read the value of a yes-or-no option."""
    if text.lower() in TRUE + FALSE:
        return text.lower() in TRUE
    raise argparse.ArgumentTypeError(f"takes true or false, not {text!r}")


def hint(name: str, parser: OptionParser, owners: Owners, prefix: str = "") -> str:
    """
    Return a sentence, preceded by a space, on what an unknown option may mean: an option of this command with a
    similar name, or the commands that have the option.
    """
    known = [option.removeprefix("--") for action in parser._actions for option in action.option_strings]
    name = name.removeprefix("--").replace("-", "_")
    close = difflib.get_close_matches(name, known, n=1, cutoff=0.7)
    surely = difflib.get_close_matches(name, close, n=1, cutoff=0.8)
    if others := () if surely else owners(name):
        return f" It is an option of {' and '.join(f'`hf-mwp {other}`' for other in others)}."
    return f" Did you mean {prefix + close[0]!r}?" if close else " `--help all` lists all options."


def _add_option(group: argparse._ActionsContainer, field: dataclasses.Field, hint: Any) -> None:
    kind, default = _kind(hint), default_of(field)
    options: dict[str, Any] = {name: value for name, value in field.metadata.items() if name not in OWN_KEYS}
    options |= {"default": default, "type": kind, "help": _help(field, default)}
    options["required"] = default is dataclasses.MISSING
    if isinstance(kind, type) and issubclass(kind, Enum):
        options |= {"type": str, "choices": [each.value for each in kind]}
    elif kind is bool:
        options["type"] = to_bool
        if default is not None:
            options |= {"nargs": "?", "const": True}
    elif get_origin(kind) is list:
        # A text, such as the empty one that `TrainingArguments` has somewhere, is no default of a list.
        default = None if isinstance(default, str) else default
        options |= {"type": get_args(kind)[0], "nargs": "+", "default": default}
        if field.metadata.get("one_or_more"):
            options["action"] = OneOrMore
    group.add_argument(f"--{field.name}", **options).optional = type(None) in get_args(hint)
    if kind is bool and default is True:
        off = {"action": "store_false", "dest": field.name, "default": True}
        group.add_argument(f"--no_{field.name}", **off, help=f"The same as --{field.name} false.")


def _kind(hint: Any) -> Any:
    """Return the type of a flag's text: of a union `str` if the value may be missing, or else the other type."""
    if get_origin(hint) not in (Union, types.UnionType):
        return hint
    kinds = [kind for kind in get_args(hint) if kind is not type(None)]
    if str in kinds and type(None) in get_args(hint):
        return str
    return next((kind for kind in kinds if kind is not str), str)


def _help(field: dataclasses.Field, default: Any) -> str:
    text = field.metadata.get("help", "")
    if default in (None, "", [], dataclasses.MISSING):
        return text
    shown = str(default.value if isinstance(default, Enum) else default).replace("%", "%%")
    return f"{text} (default: {shown})"
