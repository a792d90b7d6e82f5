"""Arguments of a command from a YAML file and flags, on the fields of dataclasses."""

from __future__ import annotations

import argparse
import dataclasses
import sys
from collections.abc import Callable, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any, get_args, get_type_hints

from ...usage_error import UsageError
from .hints import hint
from .option_parser import FALSE, TRUE, OneOrMore, OptionParser, to_bool


def parse(
    command: str,
    description: str,
    dataclass_types: Sequence[type] | Callable[[], Sequence[type]],
    argv: Sequence[str],
    positional: str | None = None,
    common: Sequence[type] | None = None,
) -> tuple[list, dict[str, Any]]:
    """
    Every field of the dataclasses is a flag (`--batch_size` and `--batch-size`) and a key of the YAML file that
    `--config` names; flags win over the file, the file over defaults. `--help` shows them and ends the program. Models
    and pipeline are registered with Transformers once the arguments are read.

    Args:
        command (`str`), description (`str`): Its name, for messages, and what it does, for `--help`.
        dataclass_types (`Sequence[type]` or `Callable`): Dataclasses whose fields are the options, or what imports
            them.
        argv (`Sequence[str]`): Arguments after the name of the command.
        positional (`str`, *optional*): Name of any number of arguments without a flag; their list is among the values.
        common (`Sequence[type]`, *optional*): Dataclasses of whose fields `--help` shows those with the role `COMMON`
            (all, if none has it), where all options are too many; `--help all` shows all.

    Returns:
        `tuple[list, dict]`: an instance of each dataclass, and the resolved values by field name: what to write to a
        file for `--config` to read again.

    Raises:
        UsageError: a key or flag is unknown (the message names the file, the key and a close match), or a value has
            the wrong type.
    """
    _show_help(command, description, dataclass_types, argv, positional, common)
    if callable(dataclass_types):
        dataclass_types = dataclass_types()
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
        raise UsageError(f"{command}: unknown argument {flag!r}.{hint(flag, parser, '--')}")
    values = {name: value for name, value in vars(namespace).items() if name != "config"}
    instances = []
    for dataclass_type in dataclass_types:
        names = [field.name for field in dataclasses.fields(dataclass_type) if field.init]
        try:
            instances.append(dataclass_type(**{name: values[name] for name in names}))
        except (ValueError, TypeError) as error:
            raise UsageError(f"{command}: {error}") from error
    import_module("hf_mwp.pipelines")
    return instances, values


def build_parser(command: str, description: str, dataclass_types: Sequence[type], **kwargs) -> OptionParser:
    """The argument parser of a command, with a flag for each field of the dataclasses, and `--config`."""
    parser = OptionParser(command, description, dataclass_types, **kwargs)
    parser.add_argument("--config", metavar="FILE", help="YAML file with any of these options; flags win over it")
    return parser


def _show_help(command, description, dataclass_types, argv, positional, common) -> None:
    """Prints what `--help` asks for, and ends the program."""
    place = next((index for index, word in enumerate(argv) if word in ("-h", "--help")), None)
    if place is None:
        return
    if common is None or list(argv[place + 1 : place + 2]) == ["all"]:
        types = dataclass_types() if callable(dataclass_types) else dataclass_types
        parser = build_parser(command, description, types)
    else:
        rest = f"`hf-mwp {command} --help all` names every option, those of transformers.TrainingArguments among them."
        parser = build_parser(command, description, common, common=True, epilog=rest)
    if positional is not None:
        parser.usage += f" [{positional} ...]"
    parser.print_help()
    sys.exit(0)


def read_config(path: Path, parser: OptionParser) -> dict[str, Any]:
    """Reads and checks a YAML file of options; `UsageError` names the file, the key and what is wrong with it."""
    from ...runs.recipes.recipe_file import RecipeError, read_yaml

    try:
        content = read_yaml(path)
    except RecipeError as error:
        raise UsageError(str(error)) from error
    if content is None:
        return {}
    if not isinstance(content, dict):
        raise UsageError(
            f"{path} must hold a mapping of options (`key: value` lines), not a {type(content).__name__}."
        )
    actions = {action.dest: action for action in reversed(parser._actions) if action.dest != "config"}
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
            raise UsageError(f"{path}: unknown key {key!r}.{hint(name, parser)}")
        try:
            values[name] = _checked(value, actions[name], name in optional)
        except (ValueError, TypeError, argparse.ArgumentTypeError) as error:
            raise UsageError(f"{path}: key {key!r}: {error}") from error
    return values


def _checked(value: Any, action: argparse.Action, optional: bool) -> Any:
    """A YAML value as the flag of the same name would give it."""
    if value is None:
        if optional or action.default is None:
            return None
        raise ValueError("must have a value")
    if action.nargs == "+":
        items = value if isinstance(value, list) else [value]
        values = [_scalar(item, action) for item in items]
        return OneOrMore.joined(values) if isinstance(action, OneOrMore) else values
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


def _spelled_out(argv: Sequence[str], parser: OptionParser) -> list[str]:
    """`--a-flag` as `--a_flag`, and flags of yes-or-no options as `--flag=true`, not to swallow what follows."""
    switches = {name for action in parser._actions if action.type is to_bool for name in action.option_strings}
    words = []
    for word, following in zip(argv, [*argv[1:], ""], strict=False):
        flag, equals, value = word.partition("=")
        spelled = f"--{flag[2:].replace('-', '_')}"
        if flag.startswith("--") and spelled in parser._option_string_actions:
            word = spelled + equals + value
        words.append(f"{word}=true" if word in switches and following.lower() not in TRUE + FALSE else word)
    return words


def _config_path(argv: Sequence[str]) -> Path | None:
    early = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    early.add_argument("--config")
    path = early.parse_known_args(list(argv))[0].config
    return None if path is None else Path(path)
