"""MAWPS-Single: the 1,987 problems of MAWPS with one unknown."""

from functools import partial

from ..reading.dataset_reader import RecordReader
from .mawps import MawpsLoader
from .mwp_loader import Rows, split_by_fold


class MawpsSingleLoader(MawpsLoader):
    """
    File: `mawps_single.jsonl` (`iIndex`, `sQuestion`, `lEquations`, `lSolutions`, `fold`), or `mawps.jsonl`, of which
    the problems with a `single_fold` are taken. The equations are solved for their unknown.
    """

    name = "mawps_single"
    split_schemes = {"five_fold": "the five folds of Deductive-MWP, 397 / 397 / 397 / 397 / 399"}
    fold_schemes = {"five_fold": 5}
    folders = ("mawps_single", "mawps")
    origin = (
        "The problems are in https://github.com/LYH-YF/MWPToolkit, the folds in "
        "https://github.com/allanj/Deductive-MWP."
    )

    def read(self, reader: RecordReader, scheme: str, fold: int | None) -> dict[str, Rows]:
        whole = reader.find("mawps_single.jsonl") is None and reader.find("mawps.jsonl") is not None
        file, field = ("mawps.jsonl", "single_fold") if whole else ("mawps_single.jsonl", "fold")
        return split_by_fold(reader.rows(partial(self.row, fold=field), file), fold)
