"""SVAMP: 1,000 English problems that vary those of ASDiv-A (Patel et al., NAACL 2021)."""

from typing import Any

from ..reading.dataset_reader import RecordReader
from ..reading.record import Record
from ..reading.schema import make_row
from .mwp_loader import MwpLoader, Rows


class SvampLoader(MwpLoader):
    """
    SVAMP.

    File: `SVAMP.json`, as published: an array of `ID`, `Body`, `Question`, `Equation` (`"( 8.0 - 3.0 )"`), `Answer`
    and `Type`. A test set alone; the papers train on MAWPS and ASDiv-A.
    """

    language = "en"
    split_schemes = {"public": "all 1,000 problems are test problems"}
    folders = ("svamp",)
    origin = "SVAMP.json is at https://github.com/arkilpatel/SVAMP."

    def read(self, reader: RecordReader, scheme: str, fold: int | None) -> dict[str, Rows]:
        return {"test": reader.rows(_row, "SVAMP.json")}


def _row(record: Record) -> dict[str, Any]:
    return make_row(
        record,
        dataset="svamp",
        language="en",
        text=f"{record.text('Body').strip()} {record.text('Question').strip()}".strip(),
        equation=record.text("Equation"),
        answer=record.scalar("Answer"),
        id=record.scalar("ID"),
    )
