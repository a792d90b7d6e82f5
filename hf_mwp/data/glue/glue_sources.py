"""Where the tasks of GLUE come from: columns of their files and on the Hub, and classes."""

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
        folder (`str`, *optional*): Its folder in a user's GLUE folder; `None` if it is read from the Hub alone.
        columns (`tuple[str, ...]`): Columns of its files with the texts.
        label (`str`): Column of its files with the label.
        written (`tuple[str, ...]`): How its files write the classes.
        header (`tuple[str, ...]`): All columns of files without a header.
        dev (`str`): The public development part on the Hub.
    """

    hub_columns: tuple[str, ...]
    classes: tuple[str, ...]
    folder: str | None = None
    columns: tuple[str, ...] = ()
    label: str = "label"
    written: tuple[str, ...] = ("0", "1")
    header: tuple[str, ...] = ()
    dev: str = "validation"


PAIR = ("sentence1", "sentence2")
ENTAILMENT = ("entailment", "not_entailment")

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
    "qqp": GlueSource(("question1", "question2"), ("not_duplicate", "duplicate")),
    "qnli": GlueSource(("question", "sentence"), ENTAILMENT),
    "mnli": GlueSource(
        ("premise", "hypothesis"), ("entailment", "neutral", "contradiction"), dev="validation_matched"
    ),
}
