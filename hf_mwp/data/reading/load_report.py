"""Report of the rows that were kept and left out."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

from ..data_error import DataError
from .usability import REASONS


if TYPE_CHECKING:
    from datasets import Dataset, DatasetDict

MEANINGS = REASONS | {
    "overlap": "masked text in the other part",
    "known": "masked text that the data already has",
    "excluded": "masked text that is not to be added",
    "held_out_context": "context that a held-out problem begins with",
}
MAX_EXAMPLES = 5  # listed for each reason


@dataclass
class SplitReport:
    """Counts of one split."""

    read: int = 0  # records of the source that belong to the split
    kept: int = 0  # those that were loaded
    dropped: dict[str, int] = field(default_factory=dict)  # the others, by reason
    # Loaded ones with a fault that keeps them from being trained on, by reason.
    kept_with: dict[str, int] = field(default_factory=dict)
    examples: dict[str, list[str]] = field(default_factory=dict)  # the first few of each reason: line, id and details
    with_constants: int = 0  # loaded ones whose equation uses a number that the text lacks
    # Held-out ones whose masked text is in the training split as read, whatever its spaces, punctuation and numerals.
    overlap: int | None = None

    def count(self, counts: dict[str, int], row: Mapping[str, Any], reason: str, detail: str = "") -> None:
        """Add one to `dropped` or `kept_with`, with the row's place among the examples."""
        counts[reason] = counts.get(reason, 0) + 1
        examples = self.examples.setdefault(reason, [])
        if len(examples) < MAX_EXAMPLES:
            examples.append(f"{row['file']}, line {row['line']}, id {row['id']}{detail and f': {detail}'}")


@dataclass
class LoadReport:
    """Report of a loaded data set. `str(report)` is a table to print."""

    dataset: str
    data_dir: str  # the folder its files came from
    split_scheme: str
    fold: int | None = None  # the held-out one
    validation_fraction: float = 0.0  # share of the training split that was made the validation split
    reversed_held_out: bool = False  # whether held-out problems are replaced by their reverse-operation problems
    drop_overlap: str | None = None  # which side lost its overlapping problems: "test", "train" or none
    damaged: int = 0  # damaged records that were skipped
    damaged_examples: list[str] = field(default_factory=list)  # the first few, with file, line and field
    splits: dict[str, SplitReport] = field(default_factory=dict)  # as far as they are of the data set itself
    extra: dict[str, SplitReport] = field(default_factory=dict)  # what was added to the training split, by source

    @property
    def scheme(self) -> str:
        """Description of the split: fold, origin of the validation split, and treatment of held-out problems."""
        scheme = self.split_scheme if self.fold is None else f"{self.split_scheme}, fold {self.fold}"
        if self.validation_fraction:
            scheme += f", {self.validation_fraction:g} of train as validation"
        return f"{scheme}, held-out problems reversed" if self.reversed_held_out else scheme

    def to_dict(self) -> dict[str, Any]:
        """Return the report as plain values."""
        return asdict(self)

    def __str__(self) -> str:
        lines = [f"{self.dataset}, split {self.scheme}"]
        added = {f"added to train, {name}": split for name, split in self.extra.items()}
        for name, split in (self.splits | added).items():
            lines.append(f"  {name}: {split.kept} of {split.read} problems")
            for verb, counts in (("left out", split.dropped), ("kept although", split.kept_with)):
                lines += [f"    {count} {verb}: {MEANINGS.get(reason, reason)}" for reason, count in counts.items()]
            if split.with_constants:
                lines.append(f"    {split.with_constants} use a number that the text lacks")
            if split.overlap is not None:
                fates = {None: "", "train": "; those training problems are left out", name: "; left out"}
                fate = fates.get(self.drop_overlap, "; kept")
                lines.append(f"    {split.overlap} have the masked text of a training problem{fate}")
        if self.damaged:
            lines.append(f"  {self.damaged} damaged records skipped: {self.damaged_examples[0]}")
        return "\n".join(lines)


def dataset_report(dataset: Dataset | DatasetDict) -> LoadReport:
    """Return the report of a data set of [`load_mwp_dataset`] or one of its splits; `DataError` if there is none."""
    split = next(iter(dataset.values())) if isinstance(dataset, Mapping) else dataset
    try:
        fields = json.loads(split.info.description)
        for kind in ("splits", "extra"):
            fields[kind] = {name: SplitReport(**counts) for name, counts in fields.get(kind, {}).items()}
        return LoadReport(**fields)
    except (json.JSONDecodeError, KeyError, TypeError) as error:
        raise DataError("the data set has no report: load it with load_mwp_dataset") from error
