"""Arguments of a command from a YAML file and flags, on the fields of dataclasses."""

from __future__ import annotations

import argparse
import dataclasses
import difflib
from collections.abc import Sequence
from pathlib import Path
from typing import Any, get_args, get_type_hints

import yaml

from .errors import CommandError


def parse(
    command: str,
    description: str,
    dataclass_types: Sequence[type],
    argv: Sequence[str],
    positional: str | None = None,
) -> tuple[list, dict[str, Any]]:
    """
    Reads the arguments of a command.

    Every field of the dataclasses is a flag (`--batch_size` and `--batch-size`) and a key of the YAML file that
    `--config` names; flags win over the file, the file over defaults.

    Args:
        command (`str`): Name of the command, for messages.
        description (`str`): What it does, for `--help`.
        dataclass_types (`Sequence[type]`): Dataclasses whose fields are the options.
        argv (`Sequence[str]`): Arguments after the name of the command.
        positional (`str`, *optional*): Name of any number of arguments without a flag; their list is among the values.

    Returns:
        `tuple[list, dict]`: an instance of each dataclass, and the resolved values by field name: what to write to a
        file for `--config` to read again.

    Raises:
        CommandError: a key or flag is unknown (the message names the file, the key and a close match), or a value has
            the wrong type.
    """
    parser = build_parser(command, description, dataclass_types)
    if positional is not None:
        parser.add_argument(positional, nargs="*", help="as many as you like")
    argv = _spelled_out(argv, parser)
    config_path = _config_path(argv)
    given = {}
    if config_path is not None:
        given = read_config(config_path, parser)
        for action in parser._actions:
            if action.dest in given:
                action.required = False
        parser.set_defaults(**given)
    namespace, unknown = parser.parse_known_args(argv)
    if unknown:
        flag = unknown[0].partition("=")[0]
        names = [name for action in parser._actions for name in action.option_strings]
        raise CommandError(f"{command}: unknown argument {flag!r}.{_hint(flag, names)}")
    values = {name: value for name, value in vars(namespace).items() if name != "config"}
    instances = []
    for dataclass_type in dataclass_types:
        names = [field.name for field in dataclasses.fields(dataclass_type) if field.init]
        try:
            instances.append(dataclass_type(**{name: values[name] for name in names}))
        except (ValueError, TypeError) as error:
            raise CommandError(f"{command}: {error}") from error
    return instances, values


def build_parser(command: str, description: str, dataclass_types: Sequence[type]) -> argparse.ArgumentParser:
    """The argument parser of a command, with a flag for each field of the dataclasses, and `--config`."""
    from transformers import HfArgumentParser

    parser = HfArgumentParser(
        dataclass_types, prog=f"hf-mwp {command}", description=description, allow_abbrev=False, add_help=True
    )
    parser.add_argument("--config", metavar="FILE", help="YAML file with any of these options; flags win over it")
    return parser


def read_config(path: Path, parser: argparse.ArgumentParser) -> dict[str, Any]:
    """
    Reads and checks a YAML file of options.

    Raises:
        CommandError: the file is missing, is no YAML mapping, or has an unknown key, a key twice or a value of the
            wrong type.
    """
    try:
        content = yaml.load(path.read_text(encoding="utf-8"), Loader=_UniqueKeyLoader)
    except FileNotFoundError:
        raise CommandError(f"There is no file {path}.") from None
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise CommandError(f"{path} cannot be read as YAML: {error}") from error
    if content is None:
        return {}
    if not isinstance(content, dict):
        raise CommandError(
            f"{path} must hold a mapping of options (`key: value` lines), not a {type(content).__name__}."
        )
    actions = {action.dest: action for action in reversed(parser._actions) if action.dest not in ("help", "config")}
    optional = {
        name
        for dataclass_type in parser.dataclass_types
        for name, hint in get_type_hints(dataclass_type).items()
        if type(None) in get_args(hint)
    }
    values = {}
    for key, value in content.items():
        name = str(key).replace("-", "_")
        if name not in actions:
            raise CommandError(f"{path}: unknown key {key!r}.{_hint(name, actions)}")
        try:
            values[name] = _checked(value, actions[name], name in optional)
        except (ValueError, TypeError, argparse.ArgumentTypeError) as error:
            raise CommandError(f"{path}: key {key!r}: {error}") from error
    return values


def _checked(value: Any, action: argparse.Action, optional: bool) -> Any:
    """A YAML value as the flag of the same name would give it."""
    if value is None:
        if optional or action.default is None:
            return None
        raise ValueError("must have a value")
    if action.nargs == "+":
        items = value if isinstance(value, list) else [value]
        return [_scalar(item, action) for item in items]
    if isinstance(value, (list, dict)):
        if action.type is str:
            return value
        raise ValueError(f"takes one value, not a {type(value).__name__}")
    return _scalar(value, action)


def _scalar(value: Any, action: argparse.Action) -> Any:
    if isinstance(value, (list, dict)):
        raise ValueError(f"takes plain values, not a {type(value).__name__}")
    convert = action.type or str
    text = str(value)
    try:
        result = convert(text)
    except (ValueError, TypeError):
        kind = {int: "a whole number", float: "a number"}.get(convert, "another value")
        raise ValueError(f"takes {kind}, not {value!r}") from None
    if action.choices is not None and result not in action.choices:
        raise ValueError(f"takes one of {', '.join(map(str, action.choices))}, not {value!r}")
    return result


def _spelled_out(argv: Sequence[str], parser: argparse.ArgumentParser) -> list[str]:
    """The arguments with `--flag` as `--flag=true` for yes-or-no options, so that they do not swallow what follows."""
    from transformers.hf_argparser import string_to_bool

    switches = {name for action in parser._actions if action.type is string_to_bool for name in action.option_strings}
    words = {"true", "false", "yes", "no", "t", "f", "y", "n", "1", "0"}
    return [
        f"{argument}=true" if argument in switches and following.lower() not in words else argument
        for argument, following in zip(argv, [*argv[1:], ""], strict=False)
    ]


def _config_path(argv: Sequence[str]) -> Path | None:
    early = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    early.add_argument("--config")
    path = early.parse_known_args(list(argv))[0].config
    return None if path is None else Path(path)


def _hint(name: str, known) -> str:
    close = difflib.get_close_matches(name, list(known), n=1, cutoff=0.5)
    return f" Did you mean {close[0]!r}?" if close else " `--help` lists all of them."


class _UniqueKeyLoader(yaml.SafeLoader):
    """Safe loader that refuses a key given twice and reads `1e-4` as a number."""

    def construct_mapping(self, node, deep=False):
        seen = set()
        for key_node, _ in node.value:
            key = self.construct_object(key_node, deep=True)
            if key in seen:
                raise yaml.constructor.ConstructorError(None, None, f"key {key!r} is given twice", key_node.start_mark)
            seen.add(key)
        return super().construct_mapping(node, deep)
