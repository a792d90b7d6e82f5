"""ASDiv-A: the 1,218 arithmetic problems of ASDiv, English (Miao et al., ACL 2020)."""

from typing import Any

from ..reading.dataset_reader import RecordReader
from ..reading.record import Record
from ..reading.schema import make_row
from .mwp_loader import MwpLoader, Rows, split_by_fold


class AsdivALoader(MwpLoader):
    """
    ASDiv-A.

    File: `asdiv_a.jsonl` (`id`, `body`, `question`, `formula`, `answer`, `fold`). 28 formulas are divisions whose
    answer is rounded up or down; their equations do not give their answers.
    """

    language = "en"
    split_schemes = {"five_fold": "the five folds of the data set, 238 / 238 / 238 / 238 / 266"}
    fold_schemes = {"five_fold": 5}
    folders = ("asdiv_a", "asdiv")
    origin = (
        "The file comes with the repository of hf_mwp, in examples/data/asdiv; it is made from "
        "https://github.com/chaochun/nlu-asdiv-dataset."
    )

    def read(self, reader: RecordReader, scheme: str, fold: int | None) -> dict[str, Rows]:
        return split_by_fold(reader.rows(_row, "asdiv_a.jsonl"), fold)


def _row(record: Record) -> dict[str, Any]:
    return make_row(
        record,
        dataset="asdiv_a",
        language="en",
        text=f"{record.text('body')} {record.text('question')}".strip(),
        equation=record.text("formula"),
        answer=record.scalar("answer"),
        id=record.scalar("id"),
        fold=record.index("fold"),
    )
