import argparse
from argparse import ArgumentTypeError
from dataclasses import dataclass, field, fields
from enum import Enum

import pytest
from transformers import HfArgumentParser
from transformers.hf_argparser import string_to_bool

from hf_mwp.commands.options.parsing import OptionParser, to_bool
from hf_mwp.commands.options.stages import STAGES, types_of
from hf_mwp.utils.option import OWN_KEYS, option
from hf_mwp.utils.usage_error import UsageError


class Size(Enum):
    SMALL = "small"
    LARGE = "large"


@dataclass
class ToyArguments:
    size: Size | str = field(default=Size.SMALL, metadata={"help": "A size."})
    tree: bool = field(default=True, metadata={"help": "Draw the tree."})
    layers: list[int] | None = field(default=None, metadata={"help": "Layers."})
    share: float = field(default=0.5, metadata={"help": "A share, in %%."})


@pytest.mark.parametrize("command", sorted(STAGES))
def test_flags_are_those_of_the_parser_of_transformers(command, monkeypatch):
    add_argument = argparse._ActionsContainer.add_argument
    monkeypatch.setattr(
        # Theirs hands all metadata on to argparse.
        argparse._ActionsContainer,
        "add_argument",
        lambda self, *names, **options: add_argument(
            self, *names, **{name: value for name, value in options.items() if name not in OWN_KEYS}
        ),
    )

    def converter(given):
        # Theirs looks a choice up in the texts of all choices; ours are those texts.
        return to_bool if given is string_to_bool else str if "make_choice_type_function" in str(given) else given

    def described(parser):
        # Of a switch that is on the first action is the flag, the second turns it off.
        actions = {action.dest: action for action in reversed(parser._actions) if action.dest != "help"}
        return {
            name: (
                converter(action.type),
                action.nargs,
                action.const,
                action.default,
                list(action.choices or ()),
                action.required,
            )
            for name, action in actions.items()
        }

    types = types_of(command)
    assert described(OptionParser("toy", "", types)) == described(HfArgumentParser(types))


def test_values_are_read():
    values = vars(OptionParser("toy", "", [ToyArguments]).parse_args(["--size=large", "--layers", "1", "2"]))
    assert values == {"size": "large", "tree": True, "layers": [1, 2], "share": 0.5}
    assert OptionParser("toy", "", [ToyArguments]).parse_args(["--no_tree"]).tree is False


def test_one_value_or_several():
    @dataclass
    class Toys:
        names: list[str] | None = option(None, "Names.")

    parser = OptionParser("toy", "", [Toys])
    assert parser.parse_args([]).names is None
    assert parser.parse_args(["--names", "a"]).names == ["a"]
    assert parser.parse_args(["--names", "a", "b"]).names == ["a", "b"]


def test_help_says_what_a_flag_does():
    parser = OptionParser("toy", "A toy.", [ToyArguments])
    parser.epilog = "The end."
    shown = " ".join(parser.format_help().split())
    for part in (
        "usage: hf-mwp toy [--config FILE] [--option VALUE ...] A toy. options: --size {small,large} A size. ",
        "(default: small) --tree [TREE] Draw the tree. (default: True) --no_tree ",
        " --tree false. --layers LAYERS [LAYERS ...] Layers. --share SHARE A share, in %. (default: 0.5) The end.",
    ):
        assert part in shown


def test_common_fields_alone():
    @dataclass
    class Marked:
        share: float = option(0.5, "A share.", common=True)
        rare: float = option(0.1, "Another share.")

    assert vars(OptionParser("toy", "", [Marked], common=True).parse_args([])) == {"share": 0.5}
    assert vars(OptionParser("toy", "", [Marked]).parse_args([])) == {"share": 0.5, "rare": 0.1}
    # Where none is marked all are shown.
    assert {*vars(OptionParser("toy", "", [ToyArguments], common=True).parse_args([]))} == {
        field.name for field in fields(ToyArguments)
    }


def test_a_wrong_value_is_one_line():
    parser = OptionParser("toy", "", [ToyArguments])
    with pytest.raises(UsageError, match="^toy: .*--share.*'much'.$"):
        parser.parse_args(["--share=much"])
    with pytest.raises(UsageError, match="^toy: .*--tree.*'maybe'.$"):
        parser.parse_args(["--tree=maybe"])


def test_an_empty_output_folder():
    parser = OptionParser("export", "", types_of("export"))
    with pytest.raises(UsageError, match="^export: `output_dir` is empty"):
        parser.instances(parser.parse_known_args(["--model", "m", "--output_dir", ""])[0])


def test_yes_and_no():
    assert all(to_bool(word) for word in ("true", "True", "yes", "1"))
    assert not any(to_bool(word) for word in ("false", "No", "0"))
    with pytest.raises(ArgumentTypeError, match="'2'"):
        to_bool("2")
