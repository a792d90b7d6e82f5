"""Chinese data sets."""

from hashlib import blake2b
from typing import Any

from ..reading.file_contents import RecordReader
from ..reading.schema import Record
from ..reading.usability import REASONS
from .mwp_loader import PARTS, MwpLoader, Rows, split_by_complexity, split_by_fold, split_by_lists, split_by_name


class Ape210kLoader(MwpLoader):
    """
    Ape210k: 210,488 problems (Zhao et al., 2020).

    Files, each optional: `train.jsonl`, `valid.jsonl`, `test.jsonl`, or `train.ape.json`, `valid.ape.json`,
    `test.ape.json` as published (200,488, 5,000 and 5,000 records of `id`, `original_text`, `equation`, `ans`).
    """

    name = "ape210k"
    files = {split: (f"{part}.jsonl", f"{part}.ape.json") for split, part in PARTS.items()}
    origin = "The files are at https://github.com/Chenny0808/ape210k."


class ApeCleanLoader(MwpLoader):
    """
    Ape-clean: the part of Ape210k that MWP-BERT selects by lists of ids (Liang et al., Findings of NAACL 2022), with
    Chinese numerals turned into digits and `^` for powers.

    Files: `test.jsonl` or `ape_simple_test.json` (`id`, `original_text`, `equation`, `ans`); optional a training file
    `train.jsonl`, `ape_simple_train.json`, or `train.ape.json` of Ape210k, cut down to `ape_simple_id.txt`.
    `ape_kg_test_id.txt` lists the test problems of scheme `"listed"`.
    """

    name = "ape_clean"
    split_schemes = {
        "public": "all problems of the test file",
        "listed": "those of its problems that ape_kg_test_id.txt lists",
    }
    origin = "The files are at https://github.com/LZhenwen/MWP-BERT."

    def read(self, reader: RecordReader, scheme: str, fold: int | None) -> dict[str, Rows]:
        splits = {"test": reader.rows(self.row, "test.jsonl", "ape_simple_test.json")}
        if scheme == "listed":
            splits["test"] = self._listed(splits["test"], reader.lines("ape_kg_test_id.txt"))
        training = ("train.jsonl", "ape_simple_train.json", "train.ape.json")
        if reader.find(*training) is not None:
            splits["train"] = self._listed(reader.rows(self.row, *training), reader.lines("ape_simple_id.txt"))
        return splits

    @staticmethod
    def _listed(rows: Rows, ids: list[str]) -> Rows:
        listed = set(ids)
        return [row for row in rows if row["id"] in listed]


class Cm17kLoader(MwpLoader):
    """
    CM17K: problems of four kinds, from arithmetic to systems of equations (Qin et al., ACL 2021).

    Files, each optional: `train.jsonl`, `valid.jsonl`, `test.jsonl` (`id`, `original_text`, `equation`, `ans`). The
    text taken is `original_text`, which is segmented and has its numerals in digits, as the equations count on, and
    not `raw_text`. Only the arithmetic kind (`type` 0) has equations that are solved for their unknown.
    """

    name = "cm17k"
    lists = frozenset({"answer"})
    origin = "The files are at https://github.com/QinJinghui/NS-Solver."


class CmathDistractorLoader(MwpLoader):
    """
    CMATH's distractor set: 60 problems, each with none to five irrelevant facts (Wei et al., 2023).

    File: `cmath_distractor.jsonl` (`input`, `golden`, `distractor`: how many irrelevant facts). A test set with
    answers and without equations.
    """

    name = "cmath_distractor"
    text_fields = ("input",)
    fields = {"answer": "golden"}
    split_schemes = {"public": "all 360 problems are test problems"}
    files = {"test": ("cmath_distractor.jsonl",)}
    folders = ("zh_extra",)
    origin = "The problems are at https://github.com/XiaoMi/cmath."

    def row(self, record: Record, fold: str | None = None) -> dict[str, Any]:
        """As in [`MwpLoader`], with the number of distractors as the kind."""
        count = record.index("distractor")
        return super().row(record) | {"kind": f"{count} distractor{'s' * (count != 1)}"}


class HmwpLoader(MwpLoader):
    """
    HMWP: 5,491 problems, most of them with equations yet to be solved (Qin et al., EMNLP 2020).

    Files: `hmwp.jsonl` (`id`, `original_text`, `equation`, `ans`); `split_valid_lines.txt` and `split_test_lines.txt`,
    0-based line numbers into it, since ids repeat. Only two of the equations are solved for their unknown; load with
    `keep_unusable=True` to have the texts of the others.
    """

    name = "hmwp"
    lists = frozenset({"answer"})
    split_schemes = {"mwptoolkit": "the 4,392 / 549 / 550 of MWPToolkit"}
    origin = (
        "hmwp.jsonl is at https://github.com/QinJinghui/SAU-Solver, the split in https://github.com/LYH-YF/MWPToolkit."
    )

    def read(self, reader: RecordReader, scheme: str, fold: int | None) -> dict[str, Rows]:
        rows = reader.rows(self.row, "hmwp.jsonl")
        held_out = (map(int, reader.lines(f"split_{part}_lines.txt")) for part in ("valid", "test"))
        return split_by_lists(rows, [row["line"] - 1 for row in rows], *held_out)


class Math23kLoader(MwpLoader):
    """
    Math23k: 23,162 problems, each with an equation in one unknown (Wang et al., EMNLP 2017).

    Files: `train.jsonl`, `valid.jsonl`, `test.jsonl` (21,162, 1,000 and 1,000 records of `id`, `original_text`,
    `equation`, `ans`); for the other splits `five_fold_ids.tsv` (`id`, `fold`),
    `mwptoolkit_split_valid_ids.txt` and `mwptoolkit_split_test_ids.txt`.
    """

    name = "math23k"
    split_schemes = {
        "public": "the public 21,162 / 1,000 / 1,000",
        "train_test": "the public test problems; all other 22,162 to train on, no validation split",
        "five_fold": "the five folds of athena-math over 23,160 problems; 10004 and 17520 are in none",
        "mwptoolkit": "the 18,529 / 2,316 / 2,317 of MWPToolkit, whose test split is not the public one",
        "stratified": "7 : 1 : 2 within each level of complexity, as Yu et al. split it, chosen by a hash of the ids",
    }
    fold_schemes = {"five_fold": 5}
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
        held_out = (reader.lines(f"mwptoolkit_split_{part}_ids.txt") for part in ("valid", "test"))
        return split_by_lists(rows, [row["id"] for row in rows], *held_out)


class UnbiasedMwpLoader(MwpLoader):
    """
    UnbiasedMWP: several questions on each context (Yang et al., 2022).

    File: `unbiasedmwp_train.jsonl` (`id`, `original_text`, `equation`, `ans`, `operators`: how many the equation has,
    0 where the question asks for a number of the text; `ctx`: the same for all questions on one context). The splits
    are our own. A question without a context could stand in two of them, so it is left out.
    """

    name = "unbiasedmwp"
    split_schemes = {"contexts": "8 : 1 : 1 of the contexts, chosen by a hash of their names"}
    folders = ("zh_extra",)
    origin = "The problems are at https://github.com/QinJinghui/UnbiasedMWP."

    def read(self, reader: RecordReader, scheme: str, fold: int | None) -> dict[str, Rows]:
        rows = reader.rows(self.row, "unbiasedmwp_train.jsonl")
        return split_by_name(rows, (self._split_of(row["context"]) for row in rows))

    def row(self, record: Record, fold: str | None = None) -> dict[str, Any]:
        """As in [`MwpLoader`], with the context, and the number of operations as the kind."""
        count = record.index("operators")
        kind = f"{count} operation{'s' * (count != 1)}" if count < 3 else "3 or more operations"
        row = super().row(record) | {"context": record.text("ctx"), "kind": kind}
        return row if row["context"] else row | {"fault": ("no_context", REASONS["no_context"])}

    @staticmethod
    def _split_of(context: str) -> str:
        share = int.from_bytes(blake2b(context.encode(), digest_size=8).digest()) % 10
        return {0: "validation", 1: "test"}.get(share, "train") if context else "train"


LOADERS = (
    Ape210kLoader,
    ApeCleanLoader,
    Cm17kLoader,
    CmathDistractorLoader,
    HmwpLoader,
    Math23kLoader,
    UnbiasedMwpLoader,
)
