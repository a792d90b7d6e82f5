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
    ("name", "prefix", "hint"),
    [
        ("--num_baems", "--", "'--num_beams'"),
        ("--num-beam", "--", "'--num_beams'"),
        ("--fsdp_cnf", "--", "'--fsdp_config'"),
        ("--frobnicate", "--", "`--help all`"),
        ("num_baems", "", "'num_beams'"),
        # Only flags have a negative form.
        ("no_verbose", "", "'verbose'"),
    ],
)
def test_similar_name_is_suggested(name, prefix, hint):
    assert re.search(hint, PARSER.hint(name, prefix))


def test_help_shows_that_a_switch_needs_no_value():
    assert "--sampled [SAMPLED]" in PARSER.format_help()
