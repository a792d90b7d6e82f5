"""HMWP: 5,491 Chinese problems, most of them with equations yet to be solved (Qin et al., EMNLP 2020)."""

from ..reading.dataset_reader import RecordReader
from .mwp_loader import MwpLoader, Rows, split_by_name


class HmwpLoader(MwpLoader):
    """
    Files: `hmwp.jsonl` (`id`, `original_text`, `equation`, `ans`); `split_valid_lines.txt` and `split_test_lines.txt`,
    0-based line numbers into it, since ids repeat. Only two of the equations are solved for their unknown; load with
    `keep_unusable=True` to have the texts of the others.
    """

    name = "hmwp"
    language = "zh"
    lists = frozenset({"answer"})
    split_schemes = {"mwptoolkit": "the 4,392 / 549 / 550 of MWPToolkit"}
    folders = ("hmwp",)
    origin = (
        "hmwp.jsonl is at https://github.com/QinJinghui/SAU-Solver, the split in https://github.com/LYH-YF/MWPToolkit."
    )

    def read(self, reader: RecordReader, scheme: str, fold: int | None) -> dict[str, Rows]:
        rows = reader.rows(self.row, "hmwp.jsonl")
        names = {
            number + 1: split
            for split, part in (("validation", "valid"), ("test", "test"))
            for number in reader.numbered(f"split_{part}_lines.txt")
        }
        return split_by_name(rows, [names.get(row["line"], "train") for row in rows])
