"""Parser that reads the options of a command from a YAML file and flags into dataclasses."""

import argparse
import dataclasses
import difflib
import re
import sys
import types
from collections.abc import Callable, Mapping, Sequence
from enum import Enum
from itertools import pairwise
from typing import Any, NoReturn, Union, get_args, get_origin, get_type_hints

from hf_mwp.utils.option import GIVEN, OWN_KEYS, default_of, options_in
from hf_mwp.utils.usage_error import UsageError
from hf_mwp.utils.yaml_values import read_yaml

from .help_text import HelpFormatter, epilog_of


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
    dataclass_types: Sequence[type] | Callable[[Any], Sequence[type]],
    argv: Sequence[str],
    common: Sequence[type] | None = None,
    examples: Sequence[str] = (),
) -> list[Any]:
    """
    Read the options of a command from flags (`--batch_size` or `--batch-size`) and the YAML file of `--config`, and
    return an instance of each dataclass. Flags override the file, and the file overrides defaults. `--help` prints the
    options of the `common` dataclasses (see [`option`]), `--help all` all options, both with the `examples`, and
    exits. `dataclass_types` may be a function that imports them for the value of `--task`. Raises `UsageError` if a
    key or flag is unknown, or a value is wrong.
    """
    asks_help = "-h" in argv or "--help" in argv
    is_short = asks_help and common is not None and not _asks_all(argv)
    # The file of options and the task decide which options there are, so these two flags are read first.
    early = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    early.add_argument("--config", nargs="?")
    early.add_argument("--task", nargs="?")
    early_flags, _ = early.parse_known_args(argv)
    content = None
    if early_flags.config is not None and not asks_help:
        content = _read_options_file(early_flags.config)
    if is_short:
        dataclass_types = common
    elif callable(dataclass_types):
        task = early_flags.task
        if task is None and isinstance(content, Mapping):
            task = content.get("task")
        dataclass_types = dataclass_types(task)
    parser = OptionParser(command, description, dataclass_types, is_short)
    parser.add_argument("--config", metavar="FILE", help="YAML file with any of these options; flags override it")
    if asks_help:
        remark = REST.format(command) if is_short else ""
        parser.epilog = epilog_of(examples, remark)
        parser.print_help()
        sys.exit(0)
    argv = parser.spelled_out(argv)
    parser.set_given(content, early_flags.config)
    namespace, unknown = parser.parse_known_args(argv)
    if unknown:
        flag = unknown[0].partition("=")[0]
        raise UsageError(f"{command}: unknown argument {flag!r}.{parser.hint(flag, '--')}")
    return parser.instances(namespace)


def _asks_all(argv: Sequence[str]) -> bool:
    """Return whether the word after the first `--help` is `all`."""
    for word, following in pairwise([*argv, ""]):
        if word in ("-h", "--help"):
            return following == "all"
    return False


def _read_options_file(path: str) -> Any:
    content = read_yaml(path)
    # `hf-mwp card` has an option `stages`, which is a list.
    if isinstance(content, Mapping) and ("base" in content or isinstance(content.get("stages"), Mapping)):
        raise UsageError(f"{path} is a recipe, not a file of options. Run it with `hf-mwp run {path}`.")
    return content


def read_options(name: str, dataclass_types: Sequence[type], options: Mapping[str, Any]) -> list[Any]:
    """Parse the options in a mapping, see [`parse`]; error messages begin with `name`."""
    parser = OptionParser(name, "", dataclass_types)
    parser.set_given(options, name)
    return parser.instances(parser.parse_args([]))


class OptionParser(argparse.ArgumentParser):
    """Parser with a flag for each dataclass field, like `transformers.HfArgumentParser`, whose import is slow. With
    `common`, dataclasses with fields declared `common=True` contribute only these."""

    def __init__(self, command: str, description: str, dataclass_types: Sequence[type], common: bool = False) -> None:
        usage = f"hf-mwp {command} [--config FILE] [--option VALUE ...]"
        options = {"allow_abbrev": False, "add_help": False, "formatter_class": HelpFormatter}
        super().__init__(f"hf-mwp {command}", usage, description, **options)
        # A problem may begin with a negative number. Before 3.14, Python only accepts a number alone.
        self._negative_number_matcher = re.compile(r"-\.?\d")
        self.command = command
        self.dataclass_types = list(dataclass_types)
        for dataclass_type in self.dataclass_types:
            title = getattr(dataclass_type, "_argument_group_name", None)
            group = self if title is None else self.add_argument_group(title)
            hints = get_type_hints(dataclass_type)
            fields = list(options_in(dataclass_type).values())
            common_fields = [field for field in fields if field.metadata.get("common")]
            if common and common_fields:
                fields = common_fields
            for field in fields:
                hint = hints[field.name]
                _add_option(group, field, hint)
                if field.metadata.get("positional"):
                    words = field.name
                    if hint == list[str]:
                        words = f"[{field.name} ...]"
                    self.usage += f" {words}"

    def error(self, message: str) -> NoReturn:
        """Raise `UsageError` instead of printing all options."""
        raise UsageError(f"{self.command}: {message}.")

    def set_given(self, content: Any, source: str) -> None:
        """Parse the options in a mapping like flags and set them as defaults; `source` is shown in errors."""
        if not isinstance(content, Mapping | None):
            type_name = type(content).__name__
            raise UsageError(f"{source} must contain a mapping of options (`key: value` lines), not a {type_name}.")
        actions = {action.dest: action for action in reversed(self._actions) if action.dest != "config"}
        for key, value in (content or {}).items():
            name = str(key).replace("-", "_")
            if name not in actions:
                raise UsageError(f"{source}: unknown key {key!r}.{self.hint(name)}")
            try:
                parsed = self._value_of(actions[name], value)
            except argparse.ArgumentError as error:
                raise UsageError(f"{source}: key {key!r}: {error.message}") from error
            self.set_defaults(**{name: parsed})
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
        items = value
        if not isinstance(value, list):
            items = [value]
        values = []
        for item in items:
            parsed = self._get_value(action, str(item))
            self._check_value(action, parsed)
            values.append(parsed)
        if action.nargs in MANY:
            return values
        return values[0]

    def _get_value(self, action: argparse.Action, text: str) -> Any:
        """Parse a value. `none` sets an optional number to `None`, which may not be the default."""
        may_be_none = getattr(action, "optional", False) and action.type is not str and action.nargs not in MANY
        if may_be_none and text.lower() == "none":
            return None
        return super()._get_value(action, text)

    def instances(self, namespace: argparse.Namespace) -> list[Any]:
        """Return an instance of each dataclass. Raises `UsageError` if a dataclass rejects a value."""
        instances = []
        for dataclass_type in self.dataclass_types:
            values = {name: getattr(namespace, name) for name in options_in(dataclass_type)}
            if values.get("output_dir") == "":
                raise UsageError(f"{self.command}: `output_dir` is empty. Pass a folder (. is the current folder).")
            try:
                instance = dataclass_type(**values)
            except (ValueError, TypeError) as error:
                raise UsageError(f"{self.command}: {error}") from error
            setattr(instance, GIVEN, values)
            instances.append(instance)
        return instances

    def spelled_out(self, argv: Sequence[str]) -> list[str]:
        """Replace `--a-flag` by `--a_flag`, and a boolean flag without a value by `--flag=true`."""
        words = []
        for word, following in pairwise([*argv, ""]):
            flag, equals, value = word.partition("=")
            spelled = f"--{flag[2:].replace('-', '_')}"
            if flag.startswith("--") and spelled in self._option_string_actions:
                word = spelled + equals + value
            action = self._option_string_actions.get(word)
            if action is not None and action.type is to_bool and following.lower() not in TRUE + FALSE:
                word += "=true"
            words.append(word)
        return words

    def hint(self, name: str, prefix: str = "") -> str:
        """Return a sentence, preceded by a space, that suggests a similar option."""
        if prefix:
            options = [option.removeprefix("--") for option in self._option_string_actions]
        else:
            options = [action.dest for action in self._actions]
        name = name.removeprefix("--").replace("-", "_")
        similar = difflib.get_close_matches(name, options, n=1, cutoff=0.7)
        if not similar:
            return " `--help all` lists all options."
        return f" Did you mean {prefix + similar[0]!r}?"


def to_bool(text: str) -> bool:
    """Parse the value of a boolean option."""
    if text.lower() in TRUE + FALSE:
        return text.lower() in TRUE
    raise argparse.ArgumentTypeError(f"must be true or false, not {text!r}")


def _add_option(group: argparse._ActionsContainer, field: dataclasses.Field, hint: Any) -> None:
    value_type = _value_type(hint)
    default = default_of(field)
    options: dict[str, Any] = {name: value for name, value in field.metadata.items() if name not in OWN_KEYS}
    options |= {"default": default, "type": value_type, "help": _help(field, default)}
    flag = f"--{field.name}"
    many = "+"
    if field.metadata.get("positional"):
        flag = field.name
        many = "*"
    else:
        options["required"] = default is dataclasses.MISSING
    if isinstance(value_type, type) and issubclass(value_type, Enum):
        options["type"] = str
        options["choices"] = [member.value for member in value_type]
    elif value_type is bool:
        options["type"] = to_bool
        if default is None:
            options["metavar"] = f"[{field.name.upper()}]"
        else:
            options |= {"nargs": "?", "const": True}
    elif get_origin(value_type) is list:
        options["type"] = get_args(value_type)[0]
        options["nargs"] = many
        if isinstance(default, str):
            # `TrainingArguments` has a list field whose default is an empty string.
            options["default"] = None
    action = group.add_argument(flag, **options)
    alternatives = get_args(hint) or (hint,)
    action.optional = type(None) in alternatives
    action.kinds = set(alternatives) - {type(None)}
    if value_type is bool and default is True:
        text = f"The same as --{field.name} false."
        group.add_argument(f"--no_{field.name}", action="store_false", dest=field.name, default=True, help=text)


def _value_type(hint: Any) -> Any:
    """Return the type that parses a flag: `str` for a union of `str` and `None`, otherwise a different type."""
    if get_origin(hint) not in (Union, types.UnionType):
        return hint
    alternatives = get_args(hint)
    if str in alternatives and type(None) in alternatives:
        return str
    return next(alternative for alternative in alternatives if alternative not in (str, type(None)))


def _help(field: dataclasses.Field, default: Any) -> str:
    text = field.metadata.get("help", "")
    if default in (None, "", [], dataclasses.MISSING):
        return text
    if isinstance(default, Enum):
        default = default.value
    escaped = str(default).replace("%", "%%")
    return f"{text} (default: {escaped})"
