"""Files, columns and classes of the GLUE tasks."""

from __future__ import annotations

from dataclasses import dataclass


HUB_ID = "nyu-mll/glue"
SCORES = (0.0, 5.0)  # the range of STS-B


@dataclass(frozen=True)
class GlueSource:
    """
    A task of GLUE.

    Args:
        hub_columns (`tuple[str, ...]`): Columns with its one or two texts on the Hub.
        classes (`tuple[str, ...]`): Names of the classes in the order of their numbers; none for a regression.
        folder (`str`): Its folder in a user's GLUE folder.
        columns (`tuple[str, ...]`): Columns of its files with the texts.
        label (`str`): Column of its files with the label.
        written (`tuple[str, ...]`): How its files write the classes.
        header (`tuple[str, ...]`): All columns of files without a header.
        dev (`tuple[str, ...]`): Its public development splits as files; on the Hub `dev` is `validation`.
        broken (`float`): The largest share of lines of its public files that hold no row, and are left out.
    """

    hub_columns: tuple[str, ...]
    classes: tuple[str, ...]
    folder: str
    columns: tuple[str, ...]
    label: str = "label"
    written: tuple[str, ...] = ("0", "1")
    header: tuple[str, ...] = ()
    dev: tuple[str, ...] = ("dev",)
    broken: float = 0.0


PAIR = ("sentence1", "sentence2")
QUESTIONS = ("question1", "question2")
ENTAILMENT = ("entailment", "not_entailment")
INFERENCE = ("entailment", "neutral", "contradiction")

GLUE_SOURCES: dict[str, GlueSource] = {
    "rte": GlueSource(PAIR, ENTAILMENT, "RTE", PAIR, written=ENTAILMENT),
    "mrpc": GlueSource(PAIR, ("not_equivalent", "equivalent"), "MRPC", ("#1 String", "#2 String"), "Quality"),
    "stsb": GlueSource(PAIR, (), "STS-B", PAIR, "score"),
    "sst2": GlueSource(("sentence",), ("negative", "positive"), "SST-2", ("sentence",)),
    "cola": GlueSource(
        ("sentence",),
        ("unacceptable", "acceptable"),
        "CoLA",
        ("sentence",),
        header=("source", "label", "mark", "sentence"),
    ),
    "wnli": GlueSource(PAIR, ENTAILMENT[::-1], "WNLI", PAIR),
    # Texts with tabs or line ends break some twenty of its 404,301 lines.
    "qqp": GlueSource(QUESTIONS, ("not_duplicate", "duplicate"), "QQP", QUESTIONS, "is_duplicate", broken=1e-3),
    "qnli": GlueSource(("question", "sentence"), ENTAILMENT, "QNLI", ("question", "sentence"), written=ENTAILMENT),
    "mnli": GlueSource(
        ("premise", "hypothesis"),
        INFERENCE,
        "MNLI",
        PAIR,
        "gold_label",
        written=INFERENCE,
        dev=("dev_matched", "dev_mismatched"),
    ),
}
