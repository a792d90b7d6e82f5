"""UnbiasedMWP: Chinese problems, several questions on each context (Yang et al., 2022)."""

from hashlib import blake2b

from ..reading.dataset_reader import RecordReader
from .mwp_loader import MwpLoader, Rows, split_by_name


class UnbiasedMwpLoader(MwpLoader):
    """
    UnbiasedMWP.

    File: `unbiasedmwp_train.jsonl` (`id`, `original_text`, `equation`, `ans`, `ctx`: the same for all questions on one
    context). It has no public splits here: of the contexts, a tenth each is the validation and the test split, chosen
    by a hash of `ctx`.
    """

    name = "unbiasedmwp"
    language = "zh"
    split_schemes = {"contexts": "8 : 1 : 1 of the contexts, chosen by a hash of their names"}
    folders = ("zh_extra", "unbiasedmwp")
    origin = "The problems are at https://github.com/QinJinghui/UnbiasedMWP."

    def read(self, reader: RecordReader, scheme: str, fold: int | None) -> dict[str, Rows]:
        rows = reader.rows(self._row_and_context, "unbiasedmwp_train.jsonl")
        return split_by_name([row for row, _ in rows], [_split_of(context) for _, context in rows])

    def _row_and_context(self, record):
        return self.row(record), record.text("ctx")


def _split_of(context: str) -> str:
    share = int.from_bytes(blake2b(context.encode(), digest_size=8).digest()) % 10
    return {0: "validation", 1: "test"}.get(share, "train")
