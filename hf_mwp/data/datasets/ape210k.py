"""Ape210k: 210,488 Chinese problems (Zhao et al., 2020)."""

from typing import Any

from ..reading.dataset_reader import RecordReader
from ..reading.record import Record
from ..reading.schema import make_row
from .mwp_loader import MwpLoader, Rows


class Ape210kLoader(MwpLoader):
    """
    Ape210k.

    Files, each optional: `train.jsonl`, `valid.jsonl`, `test.jsonl`, or `train.ape.json`, `valid.ape.json`,
    `test.ape.json` as published (200,488, 5,000 and 5,000 records of `id`, `original_text`, `equation`, `ans`).
    """

    language = "zh"
    split_schemes = {"public": "the published train, validation and test files, as far as they are there"}
    folders = ("ape210k",)
    origin = "The files are at https://github.com/Chenny0808/ape210k."

    def read(self, reader: RecordReader, scheme: str, fold: int | None) -> dict[str, Rows]:
        splits = {}
        for split, part in (("train", "train"), ("validation", "valid"), ("test", "test")):
            names = (f"{part}.jsonl", f"{part}.ape.json")
            if reader.find(*names) is not None:
                splits[split] = reader.rows(ape_row, *names)
        return splits or {"train": reader.rows(ape_row, "train.jsonl")}


def ape_row(record: Record, dataset: str = "ape210k") -> dict[str, Any]:
    """A row of Ape210k, or of another data set with the same fields."""
    return make_row(
        record,
        dataset=dataset,
        language="zh",
        text=record.text("original_text"),
        equation=record.text("equation"),
        answer=record.scalar("ans"),
        id=record.scalar("id"),
    )
