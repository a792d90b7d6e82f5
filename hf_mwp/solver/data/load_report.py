"""Report of the numbers of kept and excluded rows of a loaded dataset."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hf_mwp.utils.checked_types import checked

from .data_error import DataError
from .usability import REASONS


if TYPE_CHECKING:
    from datasets import Dataset, DatasetDict

MEANINGS = REASONS | {
    "overlap": "same masked text as a problem of the training split or a held-out split",
    "known": "same masked text as a problem that is already in the data",
    "excluded": "same masked text as a held-out or excluded problem",
    "held_out_context": "a held-out problem begins with the context",
}
MAX_EXAMPLES = 5  # Maximum number of examples for each reason.


@dataclass
class SplitReport:
    """Numbers of kept and excluded problems of one split."""

    read: int = 0  # Problems of the split in the source.
    kept: int = 0  # Problems that were loaded.
    dropped: dict[str, int] = field(default_factory=dict)  # Excluded problems by reason.
    # Loaded problems with a fault because of which they cannot be trained on, by reason.
    kept_with: dict[str, int] = field(default_factory=dict)
    examples: dict[str, list[str]] = field(default_factory=dict)  # First problems by reason: file, line, id, details.
    with_constants: int = 0  # Loaded problems whose equation uses a number that is not in the text.
    overlap: int | None = None  # Held-out problems whose masked text is in the training split before the selection.

    def count(self, counts: dict[str, int], row: Mapping[str, Any], reason: str, detail: str = "") -> None:
        """Add one to `counts` (`dropped` or `kept_with`), and add the place of the row to the examples."""
        counts[reason] = counts.get(reason, 0) + 1
        examples = self.examples.setdefault(reason, [])
        if len(examples) < MAX_EXAMPLES:
            examples.append(f"{row['file']}, line {row['line']}, id {row['id']}{detail and f': {detail}'}")


@checked
@dataclass
class LoadReport:
    """Report of a loaded dataset. `str(report)` returns a table to print."""

    dataset: str
    data_dir: str  # Name of the folder of the files, without its path.
    split_scheme: str
    fold: int | None = None  # Held-out fold.
    validation_fraction: float = 0.0  # Share of the training split that became the validation split.
    reversed_held_out: bool = False  # Whether held-out problems were replaced by their reverse-operation problems.
    drop_overlap: str | None = None  # Split without its overlapping problems: "test", "train" or None.
    damaged: int = 0  # Damaged records that were skipped.
    damaged_examples: list[str] = field(default_factory=list)  # First damaged records, with file, line and field.
    splits: dict[str, SplitReport] = field(default_factory=dict)  # Counts of the splits, without added problems.
    extra: dict[str, SplitReport] = field(default_factory=dict)  # Problems added to the training split, by source.

    def add_damaged(self, errors: list[DataError]) -> None:
        """Count the errors of skipped records, and add the first messages, with names of files instead of paths."""
        self.damaged += len(errors)
        for error in errors[: MAX_EXAMPLES - len(self.damaged_examples)]:
            self.damaged_examples.append(str(error).replace(str(error.file), Path(str(error.file)).name))

    @property
    def scheme(self) -> str:
        """Description of the split: fold, origin of the validation split, and treatment of held-out problems."""
        scheme = self.split_scheme
        if self.fold is not None:
            scheme += f", fold {self.fold}"
        if self.validation_fraction:
            scheme += f", {self.validation_fraction:g} of train as validation"
        if self.reversed_held_out:
            scheme += ", held-out problems reversed"
        return scheme

    def to_dict(self) -> dict[str, Any]:
        """Return the report as plain values."""
        return asdict(self)

    def __str__(self) -> str:
        lines = [f"{self.dataset}, split {self.scheme}"]
        added = {f"added to train, {name}": split for name, split in self.extra.items()}
        for name, split in (self.splits | added).items():
            lines.append(f"  {name}: {split.kept} of {split.read} problems")
            for verb, counts in (("left out", split.dropped), ("kept although", split.kept_with)):
                for reason, num_problems in counts.items():
                    lines.append(f"    {num_problems} {verb}: {MEANINGS.get(reason, reason)}")
                    if split.examples.get(reason):
                        lines.append(f"      first: {split.examples[reason][0]}")
            if split.with_constants:
                lines.append(f"    {split.with_constants} use a number that is not in the text")
            if split.overlap is not None:
                fates = {None: "", "train": "; these training problems are left out", name: "; left out"}
                fate = fates.get(self.drop_overlap, "; kept")
                lines.append(f"    {split.overlap} have the masked text of a training problem{fate}")
        if self.damaged:
            lines.append(f"  {self.damaged} damaged records skipped: {self.damaged_examples[0]}")
        return "\n".join(lines)


def dataset_report(dataset: Dataset | DatasetDict) -> LoadReport:
    """Return the report of a dataset or split from [`load_mwp_dataset`]. Raises `DataError` for any other dataset."""
    try:
        if isinstance(dataset, Mapping):
            dataset = next(iter(dataset.values()))
        fields = json.loads(dataset.info.description)
        for field_name in ("splits", "extra"):
            reports = fields.get(field_name, {})
            fields[field_name] = {name: SplitReport(**counts) for name, counts in reports.items()}
        return LoadReport(**fields)
    except (json.JSONDecodeError, KeyError, TypeError, AttributeError, StopIteration) as error:
        raise DataError("the dataset has no report. Load it with `load_mwp_dataset`") from error
