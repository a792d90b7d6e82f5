"""CM17K: Chinese problems of four kinds, from arithmetic to systems of equations (Qin et al., ACL 2021)."""

from typing import Any

from ..reading.dataset_reader import RecordReader
from ..reading.record import Record
from ..reading.schema import SEPARATOR, make_row
from .mwp_loader import MwpLoader, Rows


class Cm17kLoader(MwpLoader):
    """
    CM17K.

    Files, each optional: `train.jsonl`, `valid.jsonl`, `test.jsonl` (`id`, `original_text`, `equation`, `ans`). The
    text taken is `original_text`, which is segmented and has its numerals in digits, as the equations count on, and
    not `raw_text`. Only the arithmetic kind (`type` 0) has equations that are solved for their unknown.
    """

    language = "zh"
    split_schemes = {"public": "the published train, validation and test files, as far as they are there"}
    folders = ("cm17k",)
    origin = "The files are at https://github.com/QinJinghui/NS-Solver."

    def read(self, reader: RecordReader, scheme: str, fold: int | None) -> dict[str, Rows]:
        parts = (("train", "train"), ("validation", "valid"), ("test", "test"))
        there = {split: f"{part}.jsonl" for split, part in parts if reader.find(f"{part}.jsonl") is not None}
        return {split: reader.rows(_row, name) for split, name in (there or {"train": "train.jsonl"}).items()}


def _row(record: Record) -> dict[str, Any]:
    return make_row(
        record,
        dataset="cm17k",
        language="zh",
        text=record.text("original_text"),
        equation=record.text("equation"),
        answer=record.joined("ans", SEPARATOR),
        id=record.scalar("id"),
    )
