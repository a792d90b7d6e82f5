"""Ape-clean: the part of Ape210k that MWP-BERT selects by lists of ids (Liang et al., Findings of NAACL 2022)."""

from ..reading.dataset_reader import RecordReader
from .mwp_loader import MwpLoader, Rows


class ApeCleanLoader(MwpLoader):
    """
    Ape-clean: problems of Ape210k with Chinese numerals turned into digits and `^` for powers.

    Files: `test.jsonl` or `ape_simple_test.json` (`id`, `original_text`, `equation`, `ans`); optional a training file
    `train.jsonl`, `ape_simple_train.json`, or `train.ape.json` of Ape210k, cut down to `ape_simple_id.txt`.
    `ape_kg_test_id.txt` lists the test problems of scheme `"listed"`.
    """

    name = "ape_clean"
    language = "zh"
    split_schemes = {
        "public": "all problems of the test file",
        "listed": "those of its problems that ape_kg_test_id.txt lists",
    }
    folders = ("ape_clean",)
    origin = "The files are at https://github.com/LZhenwen/MWP-BERT."

    def read(self, reader: RecordReader, scheme: str, fold: int | None) -> dict[str, Rows]:
        splits = {"test": reader.rows(self.row, "test.jsonl", "ape_simple_test.json")}
        if scheme == "listed":
            splits["test"] = _select(splits["test"], reader, "ape_kg_test_id.txt")
        training = ("train.jsonl", "ape_simple_train.json", "train.ape.json")
        if reader.find(*training) is not None:
            splits["train"] = _select(reader.rows(self.row, *training), reader, "ape_simple_id.txt")
        return splits


def _select(rows: Rows, reader: RecordReader, ids: str) -> Rows:
    listed = set(reader.lines(ids))
    return [row for row in rows if row["id"] in listed]
