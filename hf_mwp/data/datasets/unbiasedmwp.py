"""UnbiasedMWP: Chinese problems, several questions on each context (Yang et al., 2022)."""

from hashlib import blake2b
from typing import Any

from ..reading.dataset_reader import RecordReader
from ..reading.record import Record
from ..reading.usability import REASONS
from .mwp_loader import MwpLoader, Rows, split_by_name


class UnbiasedMwpLoader(MwpLoader):
    """
    UnbiasedMWP.

    File: `unbiasedmwp_train.jsonl` (`id`, `original_text`, `equation`, `ans`, `operators`: how many the equation has,
    0 where the question asks for a number of the text; `ctx`: the same for all questions on one context). The splits
    are our own. A question without a context could stand in two of them, so it is left out.
    """

    name = "unbiasedmwp"
    language = "zh"
    split_schemes = {"contexts": "8 : 1 : 1 of the contexts, chosen by a hash of their names"}
    folders = ("unbiasedmwp", "zh_extra")
    origin = "The problems are at https://github.com/QinJinghui/UnbiasedMWP."

    def read(self, reader: RecordReader, scheme: str, fold: int | None) -> dict[str, Rows]:
        rows = reader.rows(self.row, "unbiasedmwp_train.jsonl")
        return split_by_name(rows, (_split_of(row["context"]) for row in rows))

    def row(self, record: Record, fold: str | None = None) -> dict[str, Any]:
        """As in [`MwpLoader`], with the context, and the number of operations as the kind."""
        count = record.index("operators")
        kind = f"{count} operation{'s' * (count != 1)}" if count < 3 else "3 or more operations"
        row = super().row(record) | {"context": record.text("ctx"), "kind": kind}
        return row if row["context"] else row | {"fault": ("no_context", REASONS["no_context"])}


def _split_of(context: str) -> str:
    share = int.from_bytes(blake2b(context.encode(), digest_size=8).digest()) % 10
    return {0: "validation", 1: "test"}.get(share, "train") if context else "train"
