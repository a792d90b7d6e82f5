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
    names: list[str] | None = option(None, "Names.")
    share: float = field(default=0.5, metadata={"help": "A share, in %%."})


def actions_of(parser):
    """Properties of the flags of a parser, by the name of their option."""
    actions = {}
    # Of a switch that is on by default, the first action is the flag, and the second turns it off.
    for action in reversed(parser._actions):
        converter = action.type
        if converter is string_to_bool:
            converter = to_bool
        elif "make_choice_type_function" in str(converter):
            # Transformers looks a choice up in the texts of all choices; our choices are these texts.
            converter = str
        choices = list(action.choices or ())
        actions[action.dest] = (converter, action.nargs, action.const, action.default, choices, action.required)
    actions.pop("help", None)
    return actions


@pytest.mark.parametrize("command", sorted(STAGES))
def test_flags_are_those_of_the_parser_of_transformers(command, monkeypatch):
    add_argument = argparse._ActionsContainer.add_argument

    def add_without_own_metadata(self, *names, **options):
        # The parser of Transformers passes all metadata on to argparse.
        options = {name: value for name, value in options.items() if name not in OWN_KEYS}
        return add_argument(self, *names, **options)

    monkeypatch.setattr(argparse._ActionsContainer, "add_argument", add_without_own_metadata)
    types = types_of(command)
    assert actions_of(OptionParser("toy", "", types)) == actions_of(HfArgumentParser(types))


@pytest.mark.parametrize(
    ("argv", "values"),
    [
        (["--size=large", "--layers", "1", "2"], {"size": "large", "layers": [1, 2]}),
        (["--no_tree"], {"tree": False}),
        (["--names", "a"], {"names": ["a"]}),
        (["--names", "a", "b"], {"names": ["a", "b"]}),
    ],
)
def test_values_are_read(argv, values):
    defaults = {"size": Size.SMALL, "tree": True, "layers": None, "names": None, "share": 0.5}
    assert vars(OptionParser("toy", "", [ToyArguments]).parse_args(argv)) == defaults | values


def test_help_has_flags_choices_and_defaults():
    parser = OptionParser("toy", "A toy.", [ToyArguments])
    parser.epilog = "The end."
    text = " ".join(parser.format_help().split())
    for words in (
        "usage: hf-mwp toy [--config FILE] [--option VALUE ...] A toy. options: --size {small,large} A size. ",
        "(default: small) --tree [TREE] Draw the tree. (default: True) --no_tree ",
        " --tree false. --layers LAYERS [LAYERS ...] Layers. ",
        "--share SHARE A share, in %. (default: 0.5) The end.",
    ):
        assert words in text


def test_common_options_can_be_shown_alone():
    @dataclass
    class Marked:
        share: float = option(0.5, "A share.", common=True)
        rare: float = option(0.1, "Another share.")

    assert vars(OptionParser("toy", "", [Marked], common=True).parse_args([])) == {"share": 0.5}
    assert vars(OptionParser("toy", "", [Marked]).parse_args([])) == {"share": 0.5, "rare": 0.1}
    # If no option is marked, all are shown.
    names = vars(OptionParser("toy", "", [ToyArguments], common=True).parse_args([])).keys()
    assert names == {toy_field.name for toy_field in fields(ToyArguments)}


@pytest.mark.parametrize(
    ("flag", "message"), [("--share=much", "--share.*'much'"), ("--tree=maybe", "--tree.*'maybe'")]
)
def test_wrong_value_is_named_in_one_line(flag, message):
    with pytest.raises(UsageError, match=f"^toy: .*{message}.$"):
        OptionParser("toy", "", [ToyArguments]).parse_args([flag])


def test_empty_output_folder_is_named():
    parser = OptionParser("export", "", types_of("export"))
    with pytest.raises(UsageError, match="^export: `output_dir` is empty"):
        parser.instances(parser.parse_known_args(["--model", "m", "--output_dir", ""])[0])


def test_words_for_true_and_false():
    assert all(to_bool(word) for word in ("true", "True", "yes", "1"))
    assert not any(to_bool(word) for word in ("false", "No", "0"))
    with pytest.raises(ArgumentTypeError, match="'2'"):
        to_bool("2")
