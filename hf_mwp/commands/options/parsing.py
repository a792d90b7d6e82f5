"""Parser that reads the options of a command from a YAML file and flags into dataclasses."""

import argparse
import dataclasses
import difflib
import re
import sys
import types
from collections.abc import Callable, Mapping, Sequence
from enum import Enum
from typing import Any, NoReturn, Union, get_args, get_origin, get_type_hints

from hf_mwp.utils.option import GIVEN, OWN_KEYS, default_of, options_in
from hf_mwp.utils.usage_error import UsageError
from hf_mwp.utils.yaml_values import read_yaml


TRUE = ("true", "yes", "t", "y", "1")
FALSE = ("false", "no", "f", "n", "0")
MANY = ("+", "*")
REST = (
    "All fields of the trainer's config are options, too, such as --output_dir, --num_train_epochs, --learning_rate, "
    "--per_device_train_batch_size, --eval_strategy and --seed. `hf-mwp {} --help all` lists every option."
)


def parse(
    command: str,
    description: str,
    dataclass_types: Sequence[type] | Callable[[], Sequence[type]],
    argv: Sequence[str],
    common: Sequence[type] | None = None,
) -> list[Any]:
    """
    Read the options of a command from flags (`--batch_size` or `--batch-size`) and the YAML file of `--config`, and
    return an instance of each dataclass. Flags override the file, and the file overrides defaults. `--help` prints the
    options of the `common` dataclasses (see [`option`]), `--help all` all options, and exits. `dataclass_types` may be
    a function that imports them. Raises `UsageError` if a key or flag is unknown, or a value is wrong.
    """
    place = next((index for index, word in enumerate(argv) if word in ("-h", "--help")), None)
    is_short = place is not None and common is not None and "all" not in argv[place + 1 : place + 2]
    kinds = common if is_short else dataclass_types() if callable(dataclass_types) else dataclass_types
    parser = OptionParser(command, description, kinds, is_short)
    parser.add_argument("--config", metavar="FILE", help="YAML file with any of these options; flags override it")
    if place is not None:
        parser.epilog = REST.format(command) if is_short else None
        parser.print_help()
        sys.exit(0)
    argv = parser.spelled_out(argv)
    early = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    early.add_argument("--config")
    config = early.parse_known_args(argv)[0].config
    if config is not None:
        content = read_yaml(config)
        # `hf-mwp card` has an option `stages`, which is a list.
        if isinstance(content, Mapping) and ("base" in content or isinstance(content.get("stages"), Mapping)):
            raise UsageError(f"{config} is a recipe, not a file of options. Run it with `hf-mwp run {config}`.")
        parser.set_given(content, config)
    namespace, unknown = parser.parse_known_args(argv)
    if unknown:
        flag = unknown[0].partition("=")[0]
        raise UsageError(f"{command}: unknown argument {flag!r}.{parser.hint(flag, '--')}")
    return parser.instances(namespace)


def read_options(name: str, dataclass_types: Sequence[type], given: Mapping[str, Any]) -> list[Any]:
    """Parse the options in a mapping, see [`parse`]; error messages begin with `name`."""
    parser = OptionParser(name, "", dataclass_types)
    parser.set_given(given, name)
    return parser.instances(parser.parse_args([]))


class OptionParser(argparse.ArgumentParser):
    """Parser with a flag for each dataclass field, like `transformers.HfArgumentParser`, whose import is slow. With
    `common`, dataclasses with fields declared `common=True` contribute only these."""

    def __init__(self, command: str, description: str, dataclass_types: Sequence[type], common: bool = False) -> None:
        usage = f"hf-mwp {command} [--config FILE] [--option VALUE ...]"
        super().__init__(f"hf-mwp {command}", usage, description, allow_abbrev=False, add_help=False)
        # A problem may begin with a negative number. Before 3.14, Python only accepts a number alone.
        self._negative_number_matcher = re.compile(r"-\.?\d")
        self.command, self.dataclass_types = command, list(dataclass_types)
        for each in self.dataclass_types:
            title = getattr(each, "_argument_group_name", None)
            group = self if title is None else self.add_argument_group(title)
            hints, fields = get_type_hints(each), options_in(each).values()
            marked = [field for field in fields if field.metadata.get("common")]
            for field in marked if common and marked else fields:
                _add_option(group, field, hints[field.name])
                if field.metadata.get("positional"):
                    self.usage += f" [{field.name} ...]" if hints[field.name] == list[str] else f" {field.name}"

    def error(self, message: str) -> NoReturn:
        """Raise `UsageError` instead of printing all options."""
        raise UsageError(f"{self.command}: {message}.")

    def set_given(self, content: Any, source: str) -> None:
        """Parse the options in a mapping like flags and set them as defaults; `source` is shown in errors."""
        if not isinstance(content, Mapping | None):
            kind = type(content).__name__
            raise UsageError(f"{source} must contain a mapping of options (`key: value` lines), not a {kind}.")
        actions = {action.dest: action for action in reversed(self._actions) if action.dest != "config"}
        for key, value in (content or {}).items():
            name = str(key).replace("-", "_")
            if name not in actions:
                raise UsageError(f"{source}: unknown key {key!r}.{self.hint(name)}")
            try:
                self.set_defaults(**{name: self._value_of(actions[name], value)})
            except argparse.ArgumentError as error:
                raise UsageError(f"{source}: key {key!r}: {error.message}") from error
            actions[name].required = False

    def _value_of(self, action: argparse.Action, value: Any) -> Any:
        if value is None or (value == [] and action.nargs in MANY):
            if not action.optional and action.default not in (None, []):
                raise argparse.ArgumentError(action, "must have a value")
            return value
        if value is False and "no" in (action.choices or ()):
            value = "no"  # YAML reads `no` without quotes as false.
        if action.nargs not in MANY and isinstance(value, list | dict):
            if action.type is not str or action.kinds <= {str}:
                fault = f"must be a number or a text, not the {type(value).__name__} {value!r}. Put texts in quotes"
                raise argparse.ArgumentError(action, fault)
            return value
        values = [self._get_value(action, str(item)) for item in (value if isinstance(value, list) else [value])]
        for each in values:
            self._check_value(action, each)
        return values if action.nargs in MANY else values[0]

    def _get_value(self, action: argparse.Action, text: str) -> Any:
        """Parse a value. `none` sets an optional number to `None`, which may not be the default."""
        may_be_none = getattr(action, "optional", False) and action.type is not str and action.nargs not in MANY
        return None if may_be_none and text.lower() == "none" else super()._get_value(action, text)

    def instances(self, namespace: argparse.Namespace) -> list[Any]:
        """Return an instance of each dataclass. Raises `UsageError` if a dataclass rejects a value."""
        found = []
        for each in self.dataclass_types:
            given = {name: getattr(namespace, name) for name in options_in(each)}
            if given.get("output_dir") == "":
                raise UsageError(f"{self.command}: `output_dir` is empty. Pass a folder (. is the current folder).")
            try:
                found.append(each(**given))
            except (ValueError, TypeError) as error:
                raise UsageError(f"{self.command}: {error}") from error
            setattr(found[-1], GIVEN, given)
        return found

    def spelled_out(self, argv: Sequence[str]) -> list[str]:
        """Replace `--a-flag` by `--a_flag`, and a boolean flag without a value by `--flag=true`."""
        switches = {name for action in self._actions if action.type is to_bool for name in action.option_strings}
        words = []
        for word, following in zip(argv, [*argv[1:], ""], strict=False):
            flag, equals, value = word.partition("=")
            spelled = f"--{flag[2:].replace('-', '_')}"
            if flag.startswith("--") and spelled in self._option_string_actions:
                word = spelled + equals + value
            words.append(f"{word}=true" if word in switches and following.lower() not in TRUE + FALSE else word)
        return words

    def hint(self, name: str, prefix: str = "") -> str:
        """Return a sentence, preceded by a space, that suggests a similar option."""
        flags = [option.removeprefix("--") for option in self._option_string_actions]
        known = flags if prefix else [action.dest for action in self._actions]
        name = name.removeprefix("--").replace("-", "_")
        close = difflib.get_close_matches(name, known, n=1, cutoff=0.7)
        return f" Did you mean {prefix + close[0]!r}?" if close else " `--help all` lists all options."


def to_bool(text: str) -> bool:
    """Parse the value of a boolean option."""
    if text.lower() in TRUE + FALSE:
        return text.lower() in TRUE
    raise argparse.ArgumentTypeError(f"must be true or false, not {text!r}")


def _add_option(group: argparse._ActionsContainer, field: dataclasses.Field, hint: Any) -> None:
    kind, default = _kind(hint), default_of(field)
    options: dict[str, Any] = {name: value for name, value in field.metadata.items() if name not in OWN_KEYS}
    options |= {"default": default, "type": kind, "help": _help(field, default)}
    if not field.metadata.get("positional"):
        options["required"] = default is dataclasses.MISSING
    if isinstance(kind, type) and issubclass(kind, Enum):
        options |= {"type": str, "choices": [each.value for each in kind]}
    elif kind is bool:
        options["type"] = to_bool
        options |= {"metavar": f"[{field.name.upper()}]"} if default is None else {"nargs": "?", "const": True}
    elif get_origin(kind) is list:
        # `TrainingArguments` has a list field whose default is an empty string.
        default = None if isinstance(default, str) else default
        nargs = "*" if field.metadata.get("positional") else "+"
        options |= {"type": get_args(kind)[0], "nargs": nargs, "default": default}
    name = field.name if field.metadata.get("positional") else f"--{field.name}"
    action = group.add_argument(name, **options)
    action.optional = type(None) in get_args(hint)
    action.kinds = {*(get_args(hint) or (hint,))} - {type(None)}
    if kind is bool and default is True:
        off = {"action": "store_false", "dest": field.name, "default": True}
        group.add_argument(f"--no_{field.name}", **off, help=f"The same as --{field.name} false.")


def _kind(hint: Any) -> Any:
    """Return the type that parses a flag: `str` for a union of `str` and `None`, otherwise a different type."""
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
