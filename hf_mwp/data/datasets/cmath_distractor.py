"""CMATH's distractor set: Chinese problems with none to five irrelevant facts (Wei et al., 2023)."""

from typing import Any

from ..reading.record import Record
from ..reading.schema import make_row
from .mwp_loader import MwpLoader


class CmathDistractorLoader(MwpLoader):
    """
    File: `cmath_distractor.jsonl` (`input`, `golden`, `distractor`: how many irrelevant facts), 60 problems, each with
    none to five of them. A test set with answers and without equations.
    """

    name = "cmath_distractor"
    language = "zh"
    split_schemes = {"public": "all 360 problems are test problems"}
    files = {"test": ("cmath_distractor.jsonl",)}
    folders = ("cmath_distractor", "zh_extra")
    origin = "The problems are at https://github.com/XiaoMi/cmath."

    def row(self, record: Record, fold: str | None = None) -> dict[str, Any]:
        """The row of a record, with the number of distractors as its kind."""
        count = record.index("distractor")
        return make_row(
            record,
            dataset=self.name,
            language=self.language,
            text=record.text("input").strip(),
            equation="",
            answer=record.scalar("golden"),
            kind=f"{count} distractor{'s' * (count != 1)}",
        )
