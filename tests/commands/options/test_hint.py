import re
from dataclasses import dataclass, field

import pytest

from hf_mwp.commands.options.parsing import OptionParser


@dataclass
class ToyArguments:
    num_beams: int = field(default=1)
    fsdp_config: str | None = field(default=None)
    verbose: bool = field(default=True)
    sampled: bool | None = field(default=None)


PARSER = OptionParser("toy", "", [ToyArguments])


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("--num_baems", "'--num_beams'"),
        ("--num-beam", "'--num_beams'"),
        ("--fsdp_cnf", "'--fsdp_config'"),
        ("--frobnicate", "`--help all`"),
    ],
)
def test_hint(name, said):
    assert re.search(said, PARSER.hint(name, "--"))


def test_hint_for_a_key():
    assert "'num_beams'" in PARSER.hint("num_baems")
    # Only flags have a negative form.
    assert "'verbose'" in PARSER.hint("no_verbose")


def test_help_shows_that_a_switch_needs_no_value():
    assert "--sampled [SAMPLED]" in PARSER.format_help()
