"""Solver for batches of dataset columns, for use in several processes."""

from collections.abc import Mapping, Sequence
from functools import cache
from math import nan
from pathlib import Path
from typing import Any

from hf_mwp.utils.files import content_digest

from .solver import RuntimeSolver


# Default values keep the column types the same in all batches, also if a batch has no value for a column.
EMPTY = {"answer": nan, "value": "", "equation": "", "score": nan, "plausibility": nan, "error": ""}
MISSING = ("None", "nan", "<NA>")  # missing texts of Python, NumPy and pandas

_solver = cache(lambda folder, digest: RuntimeSolver(folder))


class BatchSolver:
    """
    Solver for `datasets.Dataset.map(..., batched=True, num_proc=...)`, Ray Data's `map_batches` and Spark's
    `mapInPandas`. Only the folder name is pickled; each worker process loads the solver on its first batch.

    Args:
        folder (`str` or `Path`): A solver's folder, see [`runtime.load_solver`].
        column (`str`, *optional*, defaults to `"text"`): Column with the texts of the problems.
        search (`Any`): Keyword arguments for calling the [`RuntimeSolver`], such as `num_beams`, except `top_k`.

    Raises:
        ValueError: `top_k` is passed. A row has one answer.

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
        if "top_k" in search:
            raise ValueError("`top_k` is not supported, because a row has one answer. Remove it.")
        self.folder = str(folder)
        self.column = column
        self.search = search
        # So that `datasets` does not reuse the answers of an earlier solver or re-ranker.
        reranker = search.get("rerank")
        reranker_digest = content_digest(reranker) if isinstance(reranker, str | Path) else ""
        self.digest = content_digest(folder), reranker_digest

    def __call__(self, columns: Mapping[str, Sequence[Any]]) -> dict[str, list[Any]]:
        """Solve a batch, whose columns are lists, arrays or a data frame. Returns the columns with `answer`, `value`,
        `equation`, `score`, `plausibility` and `error`, which replace columns of these names. Missing values are NaN
        for numbers and empty strings for texts. `datasets` keeps the type of replaced columns: rename or cast an
        `answer` of integers first. Raises `KeyError` without the column of texts, and `TypeError` if it contains
        anything but texts."""
        texts = self._texts(columns)
        records = _solver(self.folder, self.digest)(texts, **self.search)
        solved = {name: list(columns[name]) for name in columns}
        for name in EMPTY:
            solved[name] = [_value_of(record, name) for record in records]
        return solved

    def _texts(self, columns: Mapping[str, Sequence[Any]]) -> list[str]:
        """Return the texts of a batch, `""` for missing ones."""
        names = []
        if not isinstance(columns, str | bytes):
            names = list(columns)
        if self.column not in names:
            raise KeyError(f"The batch has no column {self.column!r}, only {names}. Pass `column=`.")
        values = columns[self.column]
        if isinstance(values, str | bytes | Mapping):
            raise TypeError(
                f"The column {self.column!r} must contain a list of texts, not a {type(values).__name__}. "
                "Set `batched=True`."
            )
        texts = []
        for row, value in enumerate(values):
            if isinstance(value, str):
                texts.append(value)
            elif str(value) in MISSING:
                texts.append("")
            else:
                raise TypeError(
                    f"Row {row} of the column {self.column!r} must be a text, not {type(value).__name__}: "
                    f"{value!r:.80}."
                )
        return texts


def _value_of(record: Mapping[str, Any], name: str) -> Any:
    value = record.get(name)
    return EMPTY[name] if value is None else value
