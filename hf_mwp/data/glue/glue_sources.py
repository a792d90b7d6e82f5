"""Files, columns and classes of the GLUE tasks."""

from __future__ import annotations

from dataclasses import dataclass


HUB_ID = "nyu-mll/glue"
SCORES = (0.0, 5.0)  # Range of the scores of STS-B.


@dataclass(frozen=True)
class GlueSource:
    """
    Files, columns and classes of a GLUE task.

    Args:
        hub_columns (`tuple[str, ...]`): Columns of the one or two texts in the dataset on the Hub.
        classes (`tuple[str, ...]`): Names of the classes in the order of their numbers; empty for a regression.
        folder (`str`): Name of the task's folder in a GLUE folder.
        columns (`tuple[str, ...]`): Columns of the texts in the files.
        label (`str`): Column of the label in the files.
        written (`tuple[str, ...]`): Names of the classes in the files.
        header (`tuple[str, ...]`): All columns, for files without a header.
        dev (`tuple[str, ...]`): Files of the public development splits. On the Hub, `dev` is called `validation`.
        broken (`float`): Maximum share of damaged lines in the files. Damaged lines are left out.
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
    # About twenty of the 404,301 lines are damaged by tabs or line ends in the texts.
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
