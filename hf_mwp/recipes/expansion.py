"""How long an option of a recipe becomes when its references are filled in."""

import re
from collections.abc import Iterator, Mapping
from itertools import chain
from typing import Any


# `${name}`, `${name.key[0]}`, and relative `${.key}`; what follows the name tells a resolver, `${oc.env:HOME}`.
REFERENCE = re.compile(r"\$\{\s*(\.*)([^${}:\s]*)\s*(.?)")
# Where the value of an option stands for relative references: in a mapping of its own below the variables.
OPTION = ("", "value")

Path = tuple[str, ...]


def expanded_length(value: Any, variables: Mapping[str, Any]) -> int:
    """
    An upper bound for the characters of a value whose references to variables are filled in. Nothing is filled in to
    find it: a few variables that refer to each other several times can make a text that no memory holds.
    """
    leaves = dict(chain(_leaves(variables), _leaves(value, OPTION)))
    lengths: dict[Path, int] = {}

    def length(leaf: Path) -> int:
        if leaf not in lengths:
            # A circle, of which OmegaConf says what is wrong, has no length.
            lengths[leaf] = 0
            lengths[leaf] = len(leaves[leaf]) + sum(map(below, _references(leaves[leaf], leaf)))
        return lengths[leaf]

    def below(path: Path) -> int:
        return sum(length(leaf) for leaf in leaves if leaf[: len(path)] == path)

    return below(OPTION)


def _leaves(value: Any, path: Path = ()) -> Iterator[tuple[Path, str]]:
    """The texts within a value, by their paths."""
    if isinstance(value, Mapping):
        for key, item in value.items():
            yield from _leaves(item, (*path, str(key)))
    elif isinstance(value, (list, tuple)):
        for index, item in enumerate(value):
            yield from _leaves(item, (*path, str(index)))
    elif isinstance(value, str):
        yield path, value


def _references(text: str, leaf: Path) -> Iterator[Path]:
    """The paths that a text refers to; of a name that is computed, or an argument of a resolver, all variables."""
    for dots, name, following in REFERENCE.findall(text):
        if following != "}":
            yield ()
        else:
            parts = tuple(filter(None, re.split(r"[.\[\]]", name)))
            yield (leaf[: -len(dots)] if dots else ()) + parts
