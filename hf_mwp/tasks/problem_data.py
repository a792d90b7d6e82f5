"""The problems that a command works with."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from ..usage_error import UsageError
from .data_options import DataArguments


if TYPE_CHECKING:
    from datasets import Dataset
    from rich.console import Console

    from ..metrics import TrainingOverlap
    from ..models import MwpSolver


@dataclass(frozen=True)
class ProblemData:
    """
    A data set as a command uses it.

    Args:
        name (`str`): Name of the data set.
        scheme (`str`): How it is split.
        parts (`dict[str, Dataset]`): `train`, `validation`, `test`, as far as there are such.
        report (`LoadReport`): What was read, skipped and noticed.
        numerals (`bool`, *optional*): Whether number words are numbers.
    """

    name: str
    scheme: str
    parts: dict[str, Dataset]
    report: Any
    numerals: bool | None = None

    def part(self, name: str) -> Dataset | None:
        """A part that has rows, or `None`."""
        rows = self.parts.get(name)
        return rows if rows is not None and len(rows) else None

    @property
    def train(self) -> Dataset:
        """The training part; `UsageError` if there is none."""
        rows = self.part("train")
        if rows is None:
            raise UsageError(f"{self.name} has no training part; it has {', '.join(self.parts) or 'no problems'}.")
        return rows

    @property
    def validation(self) -> Dataset | None:
        """The validation part, if any."""
        return self.part("validation")

    @property
    def test(self) -> Dataset | None:
        """The test part, if any."""
        return self.part("test")

    @property
    def language(self) -> str:
        """Language of the problems."""
        return next((rows[0]["language"] for rows in self.parts.values() if len(rows)), "zh")

    def overlap(self, model: MwpSolver, split: str) -> TrainingOverlap:
        """
        What a model that solves a part of this data set was trained on, or else the training part.

        Args:
            model ([`MwpSolver`]): The model.
            split (`str`): The part; the training part is not compared with itself.
        """
        from ..metrics import TrainingOverlap

        rows = None if split == "train" else self.part("train")
        return TrainingOverlap.of(model, None if rows is None else rows["text"])

    def tell(self, console: Console) -> None:
        """Prints what was read, skipped and noticed; within [`keep_loaded`] the same one only once."""
        _once(("told", str(self.report)), lambda: console.print(str(self.report), markup=False))

    def record(self) -> dict[str, Any]:
        """The same for a run's record."""
        used = {name: len(rows) for name, rows in self.parts.items()}
        return {"dataset": self.name, "scheme": self.scheme, "used": used, "report": self.report.to_dict()}


_kept: dict[tuple, Any] | None = None


@contextlib.contextmanager
def keep_loaded() -> Iterator[None]:
    """
    Within it, commands that read the same data read its files once, and tell of them once: stages of a recipe run in
    one process, and reading and checking a data set takes as long as training a little on it.
    """
    global _kept
    before, _kept = _kept, {} if _kept is None else _kept
    try:
        yield
    finally:
        _kept = before


def load_problem_data(args: DataArguments) -> ProblemData:
    """
    Loads the data that the options name.

    Raises:
        DataError: see [`load_mwp_dataset`].
    """
    options = asdict(args)
    limits = {"train": options.pop("max_train_samples")}
    limits["validation"] = limits["test"] = options.pop("max_eval_samples")
    name = options.pop("dataset")
    for kind in ("extra_train", "extra_exclude"):
        options[kind] = tuple(options[kind] or ())

    def read() -> tuple[Any, Any]:
        from ..data import load_mwp_dataset

        return load_mwp_dataset(name, return_report=True, **options)

    def choose() -> ProblemData:
        parts, report = _once((name, *options.items()), read)
        chosen = {}
        for part, rows in parts.items():
            limit = limits.get(part)
            if limit is not None:
                # Added problems stand at the end; a few problems are to be some of all.
                rows = rows.shuffle(seed=0) if part == "train" and options["extra_train"] else rows
                rows = rows.select(range(min(limit, len(rows))))
            chosen[part] = rows
        return ProblemData(report.dataset, report.scheme, chosen, report, args.numerals)

    return _once((name, *options.items(), *limits.items()), choose)


def _once(key: tuple, make: Callable[[], Any]) -> Any:
    if _kept is None:
        return make()
    if key not in _kept:
        _kept[key] = make()
    return _kept[key]
