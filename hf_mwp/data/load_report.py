"""What loading a data set kept, skipped and noticed."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any


@dataclass
class SplitReport:
    """Counts of one split.

    Args:
        read (`int`): Records that belong to it.
        kept (`int`): Rows that it has.
        skipped (`dict[str, int]`): Records left out, by reason.
        unusable (`dict[str, int]`): Rows kept although their equation cannot be learned from, by reason: of a
            validation or test part every problem with an answer is to be solved.
        overlap (`int`): Rows whose masked text occurs in the training part, before any are dropped.
        examples (`list[str]`): The first few places of what is counted in `skipped` and `unusable`.
    """

    read: int = 0
    kept: int = 0
    skipped: dict[str, int] = field(default_factory=dict)
    unusable: dict[str, int] = field(default_factory=dict)
    overlap: int = 0
    examples: list[str] = field(default_factory=list)

    max_examples = 5

    def count(self, counts: dict[str, int], reason: str, place: str) -> None:
        """Adds one record to `skipped` or `unusable`."""
        counts[reason] = counts.get(reason, 0) + 1
        if len(self.examples) < self.max_examples:
            self.examples.append(f"{place}: {reason}")


@dataclass
class LoadReport:
    """How a data set was split and what became of its records.

    Args:
        dataset (`str`): Its name.
        scheme (`str`): Named split, with the fold where it has folds.
        splits (`dict[str, SplitReport]`): Counts per split.
        overlap_dropped (`bool`): Whether rows that overlap with the training part were left out.
    """

    dataset: str
    scheme: str
    splits: dict[str, SplitReport] = field(default_factory=dict)
    overlap_dropped: bool = False

    def to_dict(self) -> dict[str, Any]:
        """The report as plain values."""
        return asdict(self)

    def __str__(self) -> str:
        lines = [f"{self.dataset}, split {self.scheme}"]
        for name, split in self.splits.items():
            line = f"  {name}: {split.kept} of {split.read} problems"
            for reason, count in split.skipped.items():
                line += f"; {count} skipped: {reason}"
            for reason, count in split.unusable.items():
                line += f"; {count} kept, for evaluation only: {reason}"
            if name != "train" and "train" in self.splits:
                line += f"; masked text of {split.overlap} occurs in train"
                line += " (dropped)" if self.overlap_dropped and split.overlap else ""
            lines.append(line)
        return "\n".join(lines)
