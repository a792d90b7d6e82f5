"""The types that annotations accept, and the messages about all others."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import pytest
import torch
from datasets import Dataset

from hf_mwp.utils.checked_types import check_fields, check_type, checked


if TYPE_CHECKING:
    from hf_mwp import MathWordProblem

NAN = float("nan")


@pytest.mark.parametrize(
    ("hint", "values"),
    [
        (bool, [True, np.bool_(False)]),
        (int, [3, np.int64(3)]),
        (float, [3, 0.5, np.float32(2), float("inf")]),
        (str | Path, ["a", Path("a")]),
        (Sequence[str], [["a"], ("a",), [], Dataset.from_list([{"a": "b"}])["a"]]),
        (Sequence[float], [torch.ones(2), np.ones(2), range(3)]),
        (Iterable[int], [iter("no item is read"), {1}, (number for number in "ab")]),
        (Mapping[str, int], [{"a": 1}]),
        (Callable[[int], int] | None, [print]),
        (Literal["zh", "en"], ["zh"]),
        (type[int], [int]),
        (torch.nn.Linear, [torch.compile(torch.nn.Linear(1, 1), backend="eager")]),
        (str | Sequence[Sequence[int]], ["first", [[1, 2], (3, 4)]]),
        (Any, [object(), None]),
    ],
)
def test_values_of_the_type_are_accepted(hint, values):
    for value in values:
        check_type("option", value, hint)


@pytest.mark.parametrize(
    ("hint", "value", "message"),
    [
        (bool, "false", "`option` must be True or False, got 'false'."),
        (bool, 1, "`option` must be True or False, got int 1."),
        (int, True, "`option` must be a whole number, got bool True."),
        (float, "0.3", "`option` must be a number, got '0.3'."),
        (float | None, [0.3], "`option` must be a number or None, got list [0.3]."),
        (list[str], "ab", "`option` must be a list of strings, got 'ab'."),
        (list[str], ["a", 3], "`option[1]` must be a string, got int 3."),
        (Sequence[int], {1: 2}, "`option` must be a list of whole numbers, got dict {1: 2}."),
        (Iterable[str], {"a": 1}, "`option` must be a list or another iterable of strings, got dict {'a': 1}."),
        (str | Sequence[Sequence[int]], [[1, "x"]], "`option[0][1]` must be a whole number, got 'x'."),
        (Mapping[str, int], {"a": "x"}, "`option['a']` must be a whole number, got 'x'."),
        (dict[int, list[int]], {"a": [1]}, "`option: key 'a'` must be a whole number, got 'a'."),
        (tuple[str, int], ("a", "b"), "`option[1]` must be a whole number, got 'b'."),
        (str | Path | None, b"x", "`option` must be a path or a string or None, got bytes b'x'."),
        (torch.nn.Module, "bert", "`option` must be a `Module`, got 'bert'."),
    ],
)
def test_other_values_raise(hint, value, message):
    with pytest.raises(TypeError) as caught:
        check_type("option", value, hint)
    assert str(caught.value) == message


@pytest.mark.parametrize(("hint", "value"), [(float, NAN), (list[float], [1.0, NAN]), (Literal["zh", "en"], "fr")])
def test_impossible_values_of_the_right_type_raise(hint, value):
    with pytest.raises(ValueError, match=r"`option(\[1\])?` must be (a number|one of 'zh', 'en'), got "):
        check_type("option", value, hint)


def test_functions_keep_their_signature_and_their_own_errors():
    @checked
    def repeat(text: str, times: int = 2, *others: int, end: "MathWordProblem | str" = None, **options: int) -> str:
        """Repeat a text."""
        return text * times + (end or "")

    assert repeat("a") == "aa"
    assert repeat("a", times=3, end=None) == "aaa"
    assert repeat("a", 1, "other", more="b") == "a"
    assert repeat.__doc__ == "Repeat a text." and repeat.__name__ == "repeat"
    with pytest.raises(TypeError, match="`text` must be a string"):
        repeat(3)
    with pytest.raises(TypeError, match="`times` must be a whole number"):
        repeat("a", "b")
    # A class that is imported only for type checkers is known by its name.
    with pytest.raises(TypeError, match="`end` must be a `MathWordProblem` or a string, got int 3"):
        repeat("a", end=3)
    with pytest.raises(TypeError, match="missing 1 required positional argument: 'text'"):
        repeat()


def test_classes_check_the_arguments_of_their_constructor():
    @checked
    @dataclass(frozen=True)
    class Shape:
        layers: int
        name: str = ""

    assert Shape(3, name="a") == Shape(3, "a")
    with pytest.raises(TypeError, match="`name` must be a string, got None"):
        Shape(3, None)


@dataclass
class Library:
    folder: str = "a"
    strategy: list[str] | str = "b"
    fast: bool = None


@dataclass
class Options(Library):
    own_strategy: list[str] | None = None


def test_fields_of_another_library_accept_what_it_accepts():
    check_fields(Options(Path("a"), object()), Library)
    with pytest.raises(TypeError, match="`fast` must be True or False, got 'false'"):
        check_fields(Options(fast="false"), Library)
    with pytest.raises(TypeError, match="`own_strategy` must be a list of strings or None, got 'b'"):
        check_fields(Options(own_strategy="b"), Library)


def test_a_path_may_stand_for_a_string():
    check_fields(Options(Path("a")))
    with pytest.raises(TypeError, match="`folder` must be a string"):
        check_fields(Options(object()))
