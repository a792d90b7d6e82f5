from dataclasses import dataclass, field

import pytest

from hf_mwp.cli.options.hints import commands_with, hint
from hf_mwp.cli.options.option_parser import OptionParser


@dataclass
class ToyArguments:
    num_beams: int = field(default=1)
    fsdp_config: str | None = field(default=None)


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("--num_baems", " Did you mean '--num_beams'?"),
        ("--num-beam", " Did you mean '--num_beams'?"),
        # It is spelled like another one here, but it is another command's.
        ("--encoder_config", " It is an option of `hf-mwp pretrain` and `hf-mwp train`."),
        ("--theta", " It is an option of `hf-mwp mix`."),
        ("--fsdp_cnf", " Did you mean '--fsdp_config'?"),
        ("--frobnicate", " `--help all` lists all options."),
    ],
)
def test_hint(name, said):
    assert hint(name, OptionParser("toy", "", [ToyArguments]), "--") == said


def test_hint_for_a_key():
    assert hint("num_baems", OptionParser("toy", "", [ToyArguments])) == " Did you mean 'num_beams'?"


def test_commands_with():
    assert commands_with("temperature") == ["distill", "prune", "stark"]
    assert commands_with("no_such_option") == []
