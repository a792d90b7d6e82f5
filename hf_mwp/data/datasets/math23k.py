"""Math23k: 23,162 Chinese problems, each with an equation in one unknown (Wang et al., EMNLP 2017)."""

from ..reading.dataset_reader import RecordReader
from .mwp_loader import PARTS, MwpLoader, Rows, split_by_complexity, split_by_fold, split_by_name


class Math23kLoader(MwpLoader):
    """
    Files: `train.jsonl`, `valid.jsonl`, `test.jsonl` (21,162, 1,000 and 1,000 records of `id`, `original_text`,
    `equation`, `ans`); for the other splits `five_fold_ids.tsv` (`id`, `fold`),
    `mwptoolkit_split_valid_ids.txt` and `mwptoolkit_split_test_ids.txt`.
    """

    name = "math23k"
    language = "zh"
    split_schemes = {
        "public": "the public 21,162 / 1,000 / 1,000",
        "train_test": "the public test problems; all other 22,162 to train on, no validation split",
        "five_fold": "the five folds of athena-math over 23,160 problems; 10004 and 17520 are in none",
        "mwptoolkit": "the 18,529 / 2,316 / 2,317 of MWPToolkit, whose test split is not the public one",
        "stratified": "7 : 1 : 2 within each level of complexity, as Yu et al. split it, chosen by a hash of the ids",
    }
    fold_schemes = {"five_fold": 5}
    folders = ("math23k",)
    origin = (
        "The files come with the repository of hf_mwp, in examples/data/math23k; the texts are those of "
        "https://github.com/SCNU203/Math23k."
    )

    def read(self, reader: RecordReader, scheme: str, fold: int | None) -> dict[str, Rows]:
        parts = {split: reader.rows(self.row, f"{part}.jsonl") for split, part in PARTS.items()}
        if scheme == "public":
            return parts
        if scheme == "train_test":
            return {"train": parts["train"] + parts["validation"], "test": parts["test"]}
        rows = [row for part in parts.values() for row in part]
        if scheme == "five_fold":
            # The header line has no fold.
            pairs = (line.split("\t") for line in reader.lines("five_fold_ids.tsv"))
            folds = {pair[0]: int(pair[1]) for pair in pairs if len(pair) == 2 and pair[1].isdecimal()}
            return split_by_fold((row | {"fold": folds.get(row["id"], -1)} for row in rows), fold)
        if scheme == "stratified":
            return split_by_complexity(rows, {"train": 7, "validation": 1, "test": 2})
        names = {
            number: split
            for split, part in (("validation", "valid"), ("test", "test"))
            for number in reader.lines(f"mwptoolkit_split_{part}_ids.txt")
        }
        return split_by_name(rows, [names.get(row["id"], "train") for row in rows])
