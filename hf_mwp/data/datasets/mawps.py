"""MAWPS: 2,373 English problems (Koncel-Kedziorski et al., NAACL 2016)."""

from functools import partial

from ..reading.dataset_reader import RecordReader
from .mwp_loader import MwpLoader, Rows, split_by_fold


class MawpsLoader(MwpLoader):
    """
    MAWPS. A third of the problems differ from one of another fold in their numbers alone; see `drop_overlap`.

    File: `mawps.jsonl` (`iIndex`, `sQuestion`, `lEquations`, `lSolutions`, `fold`, `single_fold`). 351 of the 2,373
    problems have an equation that is not solved for its unknown.
    """

    name = "mawps"
    language = "en"
    text_fields = ("sQuestion",)
    fields = {"equation": "lEquations", "answer": "lSolutions", "id": "iIndex"}
    lists = frozenset({"equation", "answer"})
    split_schemes = {
        "five_fold": "five folds of 474 or 476; one problem is in none",
        "single_five_fold": "the five folds of MAWPS-Single, 397 / 397 / 397 / 397 / 399; 386 problems are in none",
    }
    fold_schemes = {"five_fold": 5, "single_five_fold": 5}
    folders = ("mawps",)
    origin = "The problems are in https://github.com/LYH-YF/MWPToolkit."

    def read(self, reader: RecordReader, scheme: str, fold: int | None) -> dict[str, Rows]:
        field = "fold" if scheme == "five_fold" else "single_fold"
        return split_by_fold(reader.rows(partial(self.row, fold=field), "mawps.jsonl"), fold)
