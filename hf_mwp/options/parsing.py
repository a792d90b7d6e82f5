"""Arguments of a command from a YAML file and flags, on the fields of dataclasses."""

from __future__ import annotations

import argparse
import dataclasses
import difflib
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, get_args, get_type_hints

from ..usage_error import UsageError
from .option_parser import FALSE, TRUE, OneOrMore, OptionParser, to_bool
from .yaml_values import read_yaml


def parse(
    command: str,
    description: str,
    dataclass_types: Sequence[type] | Callable[[], Sequence[type]],
    argv: Sequence[str],
    positional: str | None = None,
    common: Sequence[type] | None = None,
    owners: Callable[[str], Sequence[str]] = lambda name: (),
) -> tuple[list, dict[str, Any]]:
    """
    Read a command's options from a YAML file and flags.

    Each field of the dataclasses is a flag (`--batch_size` or `--batch-size`) and a key of the YAML file that
    `--config` names. Flags win over the file, the file over defaults. `--help` prints the options and exits.

    Args:
        command (`str`), description (`str`):
            Name of the command, for messages, and its description for `--help`.
        dataclass_types (`Sequence[type]` or `Callable`):
            Dataclasses whose fields are the options, or a function that imports them.
        argv (`Sequence[str]`):
            Arguments after the name of the command.
        positional (`str`, *optional*):
            Name of a list of arguments without a flag.
        common (`Sequence[type]`, *optional*):
            Dataclasses that the short `--help` shows; see [`option`]. `--help all` shows every option.
        owners (`Callable`, *optional*):
            Function that returns the commands which have an option, for the hint on an unknown one.

    Returns:
        `tuple[list, dict]`: an instance of each dataclass, and the resolved values by field name, which `--config`
        reads again.

    Raises:
        UsageError: a key or flag is unknown, or a value has the wrong type. The message names file and key.
    """
    _show_help(command, description, dataclass_types, argv, positional, common)
    if callable(dataclass_types):
        dataclass_types = dataclass_types()
    parser = build_parser(command, description, dataclass_types)
    if positional is not None:
        parser.add_argument(positional, nargs="*", help="as many as you like")
    argv = _spelled_out(argv, parser)
    config_path = _config_path(argv)
    if config_path is not None:
        _set_defaults(parser, _check_mapping(read_yaml(config_path), str(config_path), parser, owners))
    namespace, unknown = parser.parse_known_args(argv)
    if unknown:
        flag = unknown[0].partition("=")[0]
        raise UsageError(f"{command}: unknown argument {flag!r}.{hint(flag, parser, owners, '--')}")
    return _make_instances(parser, namespace)


def read_options(
    name: str,
    dataclass_types: Sequence[type],
    given: Mapping[str, Any],
    owners: Callable[[str], Sequence[str]] = lambda name: (),
) -> tuple[list, dict[str, Any]]:
    """Check options given as a mapping; `name` is the place that errors name. See [`parse`]."""
    parser = build_parser(name, "", dataclass_types)
    _set_defaults(parser, _check_mapping(given, name, parser, owners))
    return _make_instances(parser, parser.parse_args([]))


def build_parser(command: str, description: str, dataclass_types: Sequence[type], **kwargs) -> OptionParser:
    """Return the argument parser of a command, with a flag for each field of the dataclasses, and `--config`."""
    parser = OptionParser(command, description, dataclass_types, **kwargs)
    parser.add_argument("--config", metavar="FILE", help="YAML file with any of these options; flags win over it")
    return parser


def hint(name: str, parser: OptionParser, owners: Callable[[str], Sequence[str]], prefix: str = "") -> str:
    """
    Return a sentence, preceded by a space, on what an unknown option may mean: an option of this command with a
    similar name, or the commands that have the option.
    """
    known = [option.removeprefix("--") for action in parser._actions for option in action.option_strings]
    name = name.removeprefix("--").replace("-", "_")
    close = difflib.get_close_matches(name, known, n=1, cutoff=0.7)
    surely = difflib.get_close_matches(name, close, n=1, cutoff=0.8)
    others = () if surely else owners(name)
    if others:
        return f" It is an option of {' and '.join(f'`hf-mwp {other}`' for other in others)}."
    return f" Did you mean {prefix + close[0]!r}?" if close else " `--help all` lists all options."


def _show_help(command, description, dataclass_types, argv, positional, common) -> None:
    place = next((index for index, word in enumerate(argv) if word in ("-h", "--help")), None)
    if place is None:
        return
    if common is None or list(argv[place + 1 : place + 2]) == ["all"]:
        types = dataclass_types() if callable(dataclass_types) else dataclass_types
        parser = build_parser(command, description, types)
    else:
        rest = (
            "Training options are those of the trainer's config, such as --output_dir, --num_train_epochs, "
            "--learning_rate, --per_device_train_batch_size, --eval_strategy and --seed. "
            f"`hf-mwp {command} --help all` lists every option."
        )
        parser = build_parser(command, description, common, common=True, epilog=rest)
    if positional is not None:
        parser.usage += f" [{positional} ...]"
    parser.print_help()
    sys.exit(0)


def _set_defaults(parser: OptionParser, given: Mapping[str, Any]) -> None:
    for action in parser._actions:
        if action.dest in given:
            action.required = False
    parser.set_defaults(**given)


def _make_instances(parser: OptionParser, namespace: argparse.Namespace) -> tuple[list, dict[str, Any]]:
    values = {name: value for name, value in vars(namespace).items() if name != "config"}
    instances = []
    for dataclass_type in parser.dataclass_types:
        names = [field.name for field in dataclasses.fields(dataclass_type) if field.init]
        try:
            instances.append(dataclass_type(**{name: values[name] for name in names}))
        except (ValueError, TypeError) as error:
            raise UsageError(f"{parser.command}: {error}") from error
    return instances, values


def _check_mapping(content: Any, source: str, parser: OptionParser, owners) -> dict[str, Any]:
    """Check names and types of options given as a mapping; `UsageError` names the source and the key."""
    if content is None:
        return {}
    if not isinstance(content, Mapping):
        raise UsageError(
            f"{source} must hold a mapping of options (`key: value` lines), not a {type(content).__name__}."
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
            raise UsageError(f"{source}: unknown key {key!r}.{hint(name, parser, owners)}")
        try:
            values[name] = _checked(value, actions[name], name in optional)
        except (ValueError, TypeError, argparse.ArgumentTypeError) as error:
            raise UsageError(f"{source}: key {key!r}: {error}") from error
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
