"""Flags from the fields of dataclasses, without an import of Transformers."""

from __future__ import annotations

import argparse
import dataclasses
import types
from collections.abc import Sequence
from enum import Enum
from typing import Any, NoReturn, Union, get_args, get_origin, get_type_hints

from ..usage_error import UsageError
from .option import OWN_KEYS, default_of


TRUE = ("true", "yes", "t", "y", "1")
FALSE = ("false", "no", "f", "n", "0")


class OptionParser(argparse.ArgumentParser):
    """
    An argument parser with a flag for each field of dataclasses: what `transformers.HfArgumentParser` makes of them,
    whose import takes longer than to show a help. With `common`, only the fields declared `common=True`, or all fields
    of a dataclass that has none.
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
        for dataclass_type in self.dataclass_types:
            self._add_options(dataclass_type, common)

    def error(self, message: str) -> NoReturn:
        """Raises `UsageError` instead of printing all options."""
        raise UsageError(f"{self.command}: {message}.")

    def _add_options(self, dataclass_type: type, common: bool) -> None:
        title = getattr(dataclass_type, "_argument_group_name", None)
        group = self if title is None else self.add_argument_group(title)
        hints = get_type_hints(dataclass_type)
        fields = [field for field in dataclasses.fields(dataclass_type) if field.init]
        marked = [field for field in fields if field.metadata.get("common")]
        for field in marked if common and marked else fields:
            _add_option(group, field, hints[field.name])


class OneOrMore(argparse.Action):
    """Takes one value or several: one is kept as it is, so that such an option's record says what was given."""

    def __call__(self, parser, namespace, values, option_string=None):
        setattr(namespace, self.dest, self.joined(values))

    @staticmethod
    def joined(values: list) -> Any:
        """One value as it is, several as a list."""
        return values[0] if len(values) == 1 else values


def to_bool(text: str) -> bool:
    """What a yes-or-no option is given."""
    if text.lower() in TRUE + FALSE:
        return text.lower() in TRUE
    raise argparse.ArgumentTypeError(f"takes true or false, not {text!r}")


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
    group.add_argument(f"--{field.name}", **options)
    if kind is bool and default is True:
        group.add_argument(
            f"--no_{field.name}",
            action="store_false",
            dest=field.name,
            default=True,
            help=f"The same as --{field.name} false.",
        )


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
