"""ASDiv-A: the 1,218 arithmetic problems of ASDiv, English (Miao et al., ACL 2020)."""

from functools import partial

from ..reading.dataset_reader import RecordReader
from .mwp_loader import MwpLoader, Rows, split_by_complexity, split_by_fold


class AsdivALoader(MwpLoader):
    """
    File: `asdiv_a.jsonl` (`id`, `body`, `question`, `formula`, `answer`, `fold`). 28 formulas are divisions whose
    answer is rounded up or down; their equations do not give their answers.
    """

    name = "asdiv_a"
    language = "en"
    text_fields = ("body", "question")
    fields = {"equation": "formula", "answer": "answer", "id": "id"}
    split_schemes = {
        "five_fold": "the five folds of the data set, 238 / 238 / 238 / 238 / 266",
        "stratified": "8 : 1 : 1 within each level of complexity, as Yu et al. split it, chosen by a hash of the ids",
    }
    fold_schemes = {"five_fold": 5}
    folders = ("asdiv_a", "asdiv")
    origin = (
        "The file comes with the repository of hf_mwp, in examples/data/asdiv; it is made from "
        "https://github.com/chaochun/nlu-asdiv-dataset."
    )

    def read(self, reader: RecordReader, scheme: str, fold: int | None) -> dict[str, Rows]:
        rows = reader.rows(partial(self.row, fold="fold"), "asdiv_a.jsonl")
        if scheme == "stratified":
            return split_by_complexity(rows, {"train": 8, "validation": 1, "test": 1})
        return split_by_fold(rows, fold)
