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
        (str | None, ["", None]),
        (str | Path, ["a", Path("a")]),
        (Sequence[str], [["a"], ("a",), [], Dataset.from_list([{"a": "b"}])["a"]]),
        (Sequence[float], [torch.ones(2), np.ones(2), range(3)]),
        (Iterable[int], [iter("no item is read"), {1}, (number for number in "ab")]),
        (Mapping[str, int], [{"a": 1}, {}]),
        (Callable[[int], int] | None, [print, None]),
        (Literal["zh", "en"], ["zh"]),
        (type[int], [int]),
        (torch.nn.Module, [torch.nn.Linear(1, 1), torch.compile(torch.nn.Linear(1, 1))]),
        (torch.nn.Linear, [torch.compile(torch.nn.Linear(1, 1))]),
        (str | Sequence[Sequence[int]], ["first", [[1, 2], (3, 4)]]),
        (Any, [object(), None]),
    ],
)
def test_what_fits(hint, values):
    for value in values:
        check_type("option", value, hint)


@pytest.mark.parametrize(
    ("hint", "value", "message"),
    [
        (bool, "false", "`option` must be True or False, got 'false'."),
        (bool, None, "`option` must be True or False, got None."),
        (bool, 1, "`option` must be True or False, got int 1."),
        (int, True, "`option` must be a whole number, got bool True."),
        (int, 1.5, "`option` must be a whole number, got float 1.5."),
        (float, "0.3", "`option` must be a number, got '0.3'."),
        (float | None, [0.3], "`option` must be a number or None, got list [0.3]."),
        (float, torch.tensor(1.0), "`option` must be a number, got Tensor tensor(1.)."),
        (list[str], "ab", "`option` must be a list of strings, got 'ab'."),
        (list[str], ["a", 3], "`option[1]` must be a string, got int 3."),
        (Sequence[int], {1: 2}, "`option` must be a list of whole numbers, got dict {1: 2}."),
        (Iterable[str], {"a": 1}, "`option` must be a list or another iterable of strings, got dict {'a': 1}."),
        (str | Sequence[Sequence[int]], [[1, "x"]], "`option[0][1]` must be a whole number, got 'x'."),
        (Mapping[str, int], {"a": "x"}, "`option['a']` must be a whole number, got 'x'."),
        (dict[int, list[int]], {"a": [1]}, "`option: key 'a'` must be a whole number, got 'a'."),
        (tuple[str, int], ("a", "b"), "`option[1]` must be a whole number, got 'b'."),
        (Callable, 3, "`option` must be a function, got int 3."),
        (str | Path | None, b"x", "`option` must be a path or a string or None, got bytes b'x'."),
        (torch.nn.Module, "bert", "`option` must be a `Module`, got 'bert'."),
    ],
)
def test_what_does_not_fit_is_named(hint, value, message):
    with pytest.raises(TypeError) as caught:
        check_type("option", value, hint)
    assert str(caught.value) == message


@pytest.mark.parametrize(("hint", "value"), [(float, NAN), (list[float], [1.0, NAN]), (Literal["zh", "en"], "fr")])
def test_values_of_the_right_type_that_cannot_be(hint, value):
    with pytest.raises(ValueError, match=r"`option(\[1\])?` must be (a number|one of 'zh', 'en'), got "):
        check_type("option", value, hint)


def test_functions_keep_their_signature_and_their_own_errors():
    @checked
    def repeat(text: str, count: int = 2, *others: int, end: "MathWordProblem | str" = None, **options: int) -> str:
        """Repeat a text."""
        return text * count + (end or "")

    assert repeat("a") == "aa" and repeat("a", count=3, end=None) == "aaa" and repeat("a", 1, "other", more="b") == "a"
    assert repeat.__doc__ == "Repeat a text." and repeat.__name__ == "repeat"
    for arguments, message in (((3,), "`text` must be a string"), (("a", "b"), "`count` must be a whole number")):
        with pytest.raises(TypeError, match=message):
            repeat(*arguments)
    # A class that is imported only for type checkers is known by its name.
    with pytest.raises(TypeError, match="`end` must be a `MathWordProblem` or a string, got int 3"):
        repeat("a", end=3)
    with pytest.raises(TypeError, match="missing 1 required positional argument: 'text'"):
        repeat()
    with pytest.raises(TypeError, match="unexpected keyword|multiple values"):
        repeat("a", text="b")


def test_classes_check_the_arguments_of_their_constructor():
    @checked
    @dataclass(frozen=True)
    class Shape:
        layers: int
        name: str = ""

    assert Shape(3, name="a") == Shape(3, "a")
    with pytest.raises(TypeError, match="`name` must be a string, got None"):
        Shape(3, None)


def test_fields_of_another_library_may_be_what_it_accepts():
    @dataclass
    class Library:
        folder: str = "a"
        strategy: list[str] | str = "b"
        fast: bool = None

    @dataclass
    class Options(Library):
        strategy_of_ours: list[str] | None = None

    check_fields(Options(Path("a"), object()), Library)
    with pytest.raises(TypeError, match="`fast` must be True or False, got 'false'"):
        check_fields(Options(fast="false"), Library)
    with pytest.raises(TypeError, match="`strategy_of_ours` must be a list of strings or None, got 'b'"):
        check_fields(Options(strategy_of_ours="b"), Library)
    # A path may stand for a string in our own options, too.
    check_fields(Options(Path("a")))
    with pytest.raises(TypeError, match="`folder` must be a string"):
        check_fields(Options(object()))
