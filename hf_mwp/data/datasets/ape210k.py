"""Ape210k: 210,488 Chinese problems (Zhao et al., 2020)."""

from .mwp_loader import PARTS, MwpLoader


class Ape210kLoader(MwpLoader):
    """
    Files, each optional: `train.jsonl`, `valid.jsonl`, `test.jsonl`, or `train.ape.json`, `valid.ape.json`,
    `test.ape.json` as published (200,488, 5,000 and 5,000 records of `id`, `original_text`, `equation`, `ans`).
    """

    name = "ape210k"
    language = "zh"
    split_schemes = {"public": "the published train, validation and test files, as far as they are there"}
    files = {split: (f"{part}.jsonl", f"{part}.ape.json") for split, part in PARTS.items()}
    folders = ("ape210k",)
    origin = "The files are at https://github.com/Chenny0808/ape210k."
