"""Chinese datasets."""

from typing import Any

from .file_contents import RecordReader
from .mwp_loader import PARTS, MwpLoader, kind_by_operations
from .record import Record, Rows
from .splits import hash_bucket, split_by_complexity, split_by_fold, split_by_lists
from .usability import REASONS


class Ape210kLoader(MwpLoader):
    """Loader of Ape210k, 210,488 problems (Zhao et al., 2020), from `train.jsonl`, `valid.jsonl`, `test.jsonl`, or as
    published from `train.ape.json`, ... (200,488, 5,000 and 5,000 records). Each file is optional."""

    name = "ape210k"
    files = {split: (f"{stem}.jsonl", f"{stem}.ape.json") for split, stem in PARTS.items()}
    origin = "The files are at https://github.com/Chenny0808/ape210k."


class ApeCleanLoader(MwpLoader):
    """Loader of Ape-clean, the subset of Ape210k that MWP-BERT selects by lists of ids (Liang et al., Findings of
    NAACL 2022), with digits instead of Chinese numerals and `^` for powers, from `test.jsonl` or
    `ape_simple_test.json`; optionally from `train.jsonl`, `ape_simple_train.json`, or `train.ape.json` of Ape210k, of
    which only the problems in `ape_simple_id.txt` are used. The scheme `"listed"` has only the test problems in
    `ape_kg_test_id.txt`."""

    name = "ape_clean"
    split_schemes = {"public": 0, "listed": 0}
    origin = "The files are at https://github.com/LZhenwen/MWP-BERT."

    def read(self, reader: RecordReader, scheme: str, fold: int | None) -> dict[str, Rows]:
        splits = {"test": reader.rows(self.row, "test.jsonl", "ape_simple_test.json")}
        lists = {}
        if scheme == "listed":
            lists["test"] = "ape_kg_test_id.txt"
        training = ("train.jsonl", "ape_simple_train.json", "train.ape.json")
        if reader.find(*training) is not None:
            splits["train"] = reader.rows(self.row, *training)
            lists["train"] = "ape_simple_id.txt"
        for split, name in lists.items():
            ids = set(reader.lines(name))
            splits[split] = [row for row in splits[split] if row["id"] in ids]
        return splits


class Cm17kLoader(MwpLoader):
    """Loader of CM17K, problems of four kinds from arithmetic to systems of equations (Qin et al., ACL 2021), from
    `train.jsonl`, `valid.jsonl`, `test.jsonl`, each optional. The text is read from `original_text`, not `raw_text`.
    It is segmented and has digits instead of Chinese numerals, as the equations require. Only arithmetic problems
    (`type` 0) have equations that are solved for their unknown."""

    name = "cm17k"
    origin = "The files are at https://github.com/QinJinghui/NS-Solver."


class CmathLoader(MwpLoader):
    """Loader of the distractor set of CMATH, 60 test problems, each with zero to five irrelevant facts (Wei et al.,
    2023), from `cmath_distractor.jsonl`, with answers but without equations."""

    name = "cmath_distractor"
    text_fields = ("input",)
    fields = {"answer": "golden"}
    files = {"test": ("cmath_distractor.jsonl",)}
    folders = ("zh_extra",)
    origin = "The problems are at https://github.com/XiaoMi/cmath."

    def row(self, record: Record) -> dict[str, Any]:
        """Create the row of a record, with the number of distractors as its `kind`."""
        num_distractors = record.index("distractor")
        return super().row(record) | {"kind": f"{num_distractors} distractor{'s' * (num_distractors != 1)}"}


class HmwpLoader(MwpLoader):
    """Loader of HMWP, 5,491 problems (Qin et al., EMNLP 2020), from `hmwp.jsonl`, and from `split_valid_lines.txt` and
    `split_test_lines.txt` with 0-based line numbers, since ids are not unique. Only two equations are solved for their
    unknown. Set `keep_unusable=True` to load the texts of all problems."""

    name = "hmwp"
    split_schemes = {"mwptoolkit": 0}  # 4,392 / 549 / 550
    origin = (
        "hmwp.jsonl is at https://github.com/QinJinghui/SAU-Solver, the split in https://github.com/LYH-YF/MWPToolkit."
    )

    def read(self, reader: RecordReader, scheme: str, fold: int | None) -> dict[str, Rows]:
        rows = reader.rows(self.row, "hmwp.jsonl")
        validation = map(int, reader.lines("split_valid_lines.txt"))
        test = map(int, reader.lines("split_test_lines.txt"))
        return split_by_lists(rows, [row["line"] - 1 for row in rows], validation, test)


class Math23kLoader(MwpLoader):
    """Loader of Math23k, 23,162 problems, each with an equation in one unknown (Wang et al., EMNLP 2017), from
    `train.jsonl`, `valid.jsonl` and `test.jsonl`. The scheme `"five_fold"` needs `five_fold_ids.tsv` (`id`, `fold`),
    and `"mwptoolkit"` needs `mwptoolkit_split_valid_ids.txt` and `mwptoolkit_split_test_ids.txt`."""

    name = "math23k"
    split_schemes = {
        "public": 0,  # 21,162 / 1,000 / 1,000
        "train_test": 0,  # The public test split; all other 22,162 problems for training.
        "five_fold": 5,  # The folds of athena-math over 23,160 problems; 10004 and 17520 are in no fold.
        "mwptoolkit": 0,  # 18,529 / 2,316 / 2,317, with a test split that differs from public.
        "stratified": 0,  # 7 : 1 : 2 within each level of complexity (Yu et al.), chosen by a hash of the ids.
    }
    origin = (
        "The files are in examples/data/math23k of the hf_mwp repository. The texts come from "
        "https://github.com/SCNU203/Math23k."
    )

    def read(self, reader: RecordReader, scheme: str, fold: int | None) -> dict[str, Rows]:
        splits = {split: reader.rows(self.row, f"{stem}.jsonl") for split, stem in PARTS.items()}
        if scheme == "public":
            return splits
        if scheme == "train_test":
            return {"train": splits["train"] + splits["validation"], "test": splits["test"]}
        rows = splits["train"] + splits["validation"] + splits["test"]
        if scheme == "five_fold":
            folds = self._read_folds(reader)
            for row in rows:
                row["fold"] = folds.get(row["id"], -1)
            return split_by_fold(rows, fold)
        if scheme == "stratified":
            return split_by_complexity(rows, {"train": 7, "validation": 1, "test": 2})
        validation = reader.lines("mwptoolkit_split_valid_ids.txt")
        test = reader.lines("mwptoolkit_split_test_ids.txt")
        return split_by_lists(rows, [row["id"] for row in rows], validation, test)

    @staticmethod
    def _read_folds(reader: RecordReader) -> dict[str, int]:
        """Return the fold of each id."""
        folds = {}
        for line in reader.lines("five_fold_ids.tsv"):
            name, _, fold = line.partition("\t")
            # The header line is skipped because its second column is not a number.
            if fold.isdecimal():
                folds[name] = int(fold)
        return folds


class UnbiasedMwpLoader(MwpLoader):
    """Loader of UnbiasedMWP, which has several questions for each context (Yang et al., 2022), from
    `unbiasedmwp_train.jsonl` (`operators`: number of operators in the equation, 0 if the question asks for a number of
    the text; `ctx`: name of the context that questions share). The split is not published but made here by contexts.
    Questions without a context are left out, because they could be in two splits."""

    name = "unbiasedmwp"
    split_schemes = {"contexts": 0}  # 8 : 1 : 1 of the contexts, chosen by a hash of their names.
    folders = ("zh_extra",)
    origin = "The problems are at https://github.com/QinJinghui/UnbiasedMWP."

    def read(self, reader: RecordReader, scheme: str, fold: int | None) -> dict[str, Rows]:
        rows = reader.rows(self.row, "unbiasedmwp_train.jsonl")
        buckets = [hash_bucket(row["context"]) for row in rows]
        return split_by_lists(rows, buckets, validation=[0], test=[1])

    def row(self, record: Record) -> dict[str, Any]:
        """Create the row of a record, with its context, and with the number of operations as its `kind`."""
        operations = kind_by_operations(record.index("operators"))
        row = super().row(record) | {"context": record.text("ctx"), "kind": operations}
        if not row["context"]:
            row["fault"] = ("no_context", REASONS["no_context"])
        return row


LOADERS = (Ape210kLoader, ApeCleanLoader, Cm17kLoader, CmathLoader, HmwpLoader, Math23kLoader, UnbiasedMwpLoader)
