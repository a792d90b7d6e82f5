"""CM17K: Chinese problems of four kinds, from arithmetic to systems of equations (Qin et al., ACL 2021)."""

from .mwp_loader import MwpLoader


class Cm17kLoader(MwpLoader):
    """
    Files, each optional: `train.jsonl`, `valid.jsonl`, `test.jsonl` (`id`, `original_text`, `equation`, `ans`). The
    text taken is `original_text`, which is segmented and has its numerals in digits, as the equations count on, and
    not `raw_text`. Only the arithmetic kind (`type` 0) has equations that are solved for their unknown.
    """

    name = "cm17k"
    language = "zh"
    lists = frozenset({"answer"})
    split_schemes = {"public": "the published train, validation and test files, as far as they are there"}
    folders = ("cm17k",)
    origin = "The files are at https://github.com/QinJinghui/NS-Solver."
