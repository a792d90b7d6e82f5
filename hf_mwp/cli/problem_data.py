"""The problems that a command works with."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from rich.text import Text

from .data_arguments import DataArguments
from .errors import CommandError


if TYPE_CHECKING:
    from datasets import Dataset

    from ..trainers.solver_evaluation import SolverPrediction


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
        """The training part; `CommandError` if there is none."""
        rows = self.part("train")
        if rows is None:
            raise CommandError(f"{self.name} has no training part; it has {', '.join(self.parts) or 'no problems'}.")
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

    def seen_in_training(self, prediction: SolverPrediction) -> bool:
        """Whether the masked text of a solved problem is in the training part."""
        return prediction.problem.masked_key in self._training_keys

    @cached_property
    def _training_keys(self) -> frozenset[str]:
        from ..data import problem_from_row

        rows = self.parts.get("train") or ()
        return frozenset(problem_from_row(row, numerals=self.numerals).masked_key for row in rows)

    def summary(self) -> Text:
        """What was read, skipped and noticed, for the terminal."""
        return Text(str(self.report))

    def record(self) -> dict[str, Any]:
        """The same for a run's record."""
        used = {name: len(rows) for name, rows in self.parts.items()}
        return {"dataset": self.name, "scheme": self.scheme, "used": used, "report": self.report.to_dict()}


def load_problem_data(args: DataArguments) -> ProblemData:
    """
    Loads the data that the options name.

    Raises:
        DataError: see [`load_mwp_dataset`].
    """
    from ..data import load_mwp_dataset

    parts, report = load_mwp_dataset(
        args.dataset,
        data_dir=args.data_dir,
        split_scheme=args.split_scheme,
        fold=args.fold,
        on_error=args.on_error,
        drop_overlap=args.drop_overlap,
        numerals=args.numerals,
        validation_fraction=args.validation_fraction,
        return_report=True,
    )
    limits = {"train": args.max_train_samples, "validation": args.max_eval_samples, "test": args.max_eval_samples}
    chosen = {}
    for name, rows in parts.items():
        limit = limits.get(name)
        chosen[name] = rows if limit is None else rows.select(range(min(limit, len(rows))))
    return ProblemData(report.dataset, report.scheme, chosen, report, args.numerals)
