"""Arguments of a command from a YAML file and flags, on the fields of dataclasses."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ..usage_error import UsageError
from .option import options_in
from .option_parser import FALSE, TRUE, OptionParser, Owners, hint, to_bool
from .yaml_values import read_yaml


def parse(
    command: str,
    description: str,
    dataclass_types: Sequence[type] | Callable[[], Sequence[type]],
    argv: Sequence[str],
    positional: str | None = None,
    common: Sequence[type] | None = None,
    owners: Owners = lambda name: (),
) -> tuple[list, dict[str, Any]]:
    """
    Read a command's options from a YAML file and flags.

    Each field of the dataclasses is a flag (`--batch_size` or `--batch-size`) and a key of the YAML file that
    `--config` names. Flags win over the file, the file over defaults. `--help` prints the options and exits.

    Args:
        command (`str`), description (`str`), argv (`Sequence[str]`): The command, its help, and its arguments.
        dataclass_types (`Sequence[type]` or `Callable`): Dataclasses of the options, or a function that imports them.
        positional (`str`, *optional*): Name of a list of arguments without a flag.
        common (`Sequence[type]`, *optional*): Dataclasses that the short `--help` shows; see [`option`].
        owners (`Callable`, *optional*): Returns the commands that have an option, for the hint on an unknown one.

    Returns:
        `tuple[list, dict]`: an instance of each dataclass, and the resolved values by field name, which `--config`
        reads again.

    Raises:
        UsageError: a key or flag is unknown, or a value has the wrong type. The message names file and key.
    """
    words = [*argv, ""]
    place = next((index for index, word in enumerate(argv) if word in ("-h", "--help")), None)
    is_short = place is not None and common is not None and words[place + 1] != "all"
    types = common if is_short else dataclass_types() if callable(dataclass_types) else dataclass_types
    rest = (
        "Training options are those of the trainer's config, such as --output_dir, --num_train_epochs, "
        "--learning_rate, --per_device_train_batch_size, --eval_strategy and --seed. "
        f"`hf-mwp {command} --help all` lists every option."
    )
    parser = build_parser(command, description, types, common=is_short, epilog=rest if is_short else None)
    if positional is not None:
        parser.add_argument(positional, nargs="*", help="as many as you like")
        parser.usage += f" [{positional} ...]"
    if place is not None:
        parser.print_help()
        sys.exit(0)
    argv = _spelled_out(argv, parser)
    config = config_path(argv)
    if config is not None:
        _set_defaults(parser, parser.convert(read_yaml(config), config, owners))
    namespace, unknown = parser.parse_known_args(argv)
    if unknown:
        flag = unknown[0].partition("=")[0]
        raise UsageError(f"{command}: unknown argument {flag!r}.{hint(flag, parser, owners, '--')}")
    return _make_instances(parser, namespace)


def read_options(
    name: str, dataclass_types: Sequence[type], given: Mapping[str, Any], owners: Owners = lambda name: ()
) -> tuple[list, dict[str, Any]]:
    """Check options given as a mapping; `name` is the place that errors name. See [`parse`]."""
    parser = build_parser(name, "", dataclass_types)
    _set_defaults(parser, parser.convert(given, name, owners))
    return _make_instances(parser, parser.parse_args([]))


def build_parser(command: str, description: str, dataclass_types: Sequence[type], **kwargs) -> OptionParser:
    """Return the argument parser of a command, with a flag for each field of the dataclasses, and `--config`."""
    parser = OptionParser(command, description, dataclass_types, **kwargs)
    parser.add_argument("--config", metavar="FILE", help="YAML file with any of these options; flags win over it")
    return parser


def config_path(argv: Sequence[str]) -> str | None:
    """Return the value of `--config` among arguments."""
    early = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    early.add_argument("--config")
    return early.parse_known_args(list(argv))[0].config


def _set_defaults(parser: OptionParser, given: Mapping[str, Any]) -> None:
    for action in parser._actions:
        action.required = action.required and action.dest not in given
    parser.set_defaults(**given)


def _make_instances(parser: OptionParser, namespace: argparse.Namespace) -> tuple[list, dict[str, Any]]:
    values = {name: value for name, value in vars(namespace).items() if name != "config"}
    try:
        return [each(**{name: values[name] for name in options_in(each)}) for each in parser.dataclass_types], values
    except (ValueError, TypeError) as error:
        raise UsageError(f"{parser.command}: {error}") from error


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
