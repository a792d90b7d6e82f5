"""Columns of problems in, columns of answers out, in any process."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from math import nan
from pathlib import Path
from typing import Any

from .solver import RuntimeSolver


# Tables need a type for each column, also for batches in which it is empty.
EMPTY = {"answer": nan, "value": "", "equation": "", "score": nan, "plausibility": nan, "error": ""}


class BatchSolver:
    """
    A solver for `datasets.Dataset.map(..., batched=True, num_proc=...)`, Ray Data's `map_batches` and Spark's
    `mapInPandas`. It is sent to workers as the name of a folder; each loads the solver when it is first called.

    Args:
        folder (`str` or `Path`): A solver's folder, see [`runtime.load_solver`].
        column (`str`, *optional*, defaults to `"text"`): Column of the problems.
        search (`Any`): Arguments of [`RuntimeSolver`]'s call, such as `num_beams`.

    Example:

    ```python
    >>> from datasets import Dataset
    >>> problems = Dataset.from_dict({"text": ["小明有4个苹果和2个梨，一共有多少个水果？"] * 100})
    >>> solver = BatchSolver("model_cards/mwp-student-3L-gts-math23k")
    >>> problems.map(solver, batched=True, batch_size=32, num_proc=2)[0]["equation"]
    '4+2'
    ```
    """

    def __init__(self, folder: str | Path, column: str = "text", **search: Any) -> None:
        self.folder, self.column, self.search = str(folder), column, search

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name != "solver"}

    @cached_property
    def solver(self) -> RuntimeSolver:
        """The solver of this process."""
        return RuntimeSolver(self.folder)

    def __call__(self, columns: Mapping[str, Sequence[Any]]) -> dict[str, list[Any]]:
        """
        Solve a batch.

        Args:
            columns (`Mapping[str, Sequence]`): Columns of the batch; lists, arrays, or a data frame.

        Returns:
            `dict[str, list]`: the columns, and `answer`, `value`, `equation`, `score`, `plausibility` and `error`;
            where a problem has none, NaN for numbers and an empty text.
        """
        found = self.solver([str(text) for text in columns[self.column]], **self.search)
        given = {name: list(columns[name]) for name in columns}
        return given | {
            name: [empty if each.get(name) is None else each[name] for each in found] for name, empty in EMPTY.items()
        }
