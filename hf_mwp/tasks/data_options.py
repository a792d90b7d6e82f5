"""Options of the data that a command reads."""

from __future__ import annotations

from dataclasses import dataclass, fields

from ..data.datasets.sources import DEFAULT_DATASET
from ..data.glue.glue_sources import GLUE_SOURCES
from ..data.locating import locate_extra, locate_extra_texts, locate_problems
from ..options import given_options, option
from ..options.checks import check_at_least_one, check_not_negative, check_share, refuse


@dataclass
class DataArguments:
    """Options of the problems that are read, and of their splits."""

    _argument_group_name = "data"

    dataset: str = option(
        DEFAULT_DATASET,
        "Name of a data set, or a JSONL or CSV file of the common schema.",
        common=True,
        locate=locate_problems,
    )
    data_dir: str | None = option(None, "Folder of the data set's files, if they are not where the loader looks.")
    split_scheme: str | None = option(
        None, "Named public split or fold scheme; the data set's usual one if not given."
    )
    fold: int | None = option(None, "Fold to hold out, for data sets with folds.", common=True)
    on_error: str = option("raise", "Stop at a damaged record, or skip and count it.", choices=("raise", "skip"))
    drop_overlap: str | None = option(
        None,
        "Split to remove problems from whose masked text is in both the training and the test split; if not given, "
        "metrics are reported with and without them.",
        choices=("test", "train"),
    )
    parse_number_words: bool | None = option(None, "Whether number words are numbers; in English only if not given.")
    validation_fraction: float = option(
        0.1, "Share of the training split held out if the data set has no validation split; 0: no validation."
    )
    extra_train: list[str] | None = option(
        None,
        "More training problems: files, data sets (their training split), or data sets and splits "
        "(ape210k:validation, mawps:all), without those whose masked text is in the data set.",
        common=True,
        locate=locate_extra,
    )
    extra_exclude: list[str] | None = option(
        None,
        "Files, data sets (validation and test split), or data sets and splits whose masked texts are left out of "
        "extra_train.",
        locate=locate_extra_texts,
    )
    augment_reverse: bool = option(
        False, "Add reverse-operation problems to the training problems: the answer is given, one number is unknown."
    )
    augment_distractors: bool = option(
        False, "Add a copy of each training problem with one to five irrelevant numbers, in clauses of others."
    )
    reverse_held_out: bool = option(False, "Replace validation and test problems by their reverse-operation problems.")
    max_train_samples: int | None = option(None, "Train on so many problems only, for a quick try.")
    max_eval_samples: int | None = option(None, "Evaluate on so many problems only.")

    def __post_init__(self):
        check_share(self, "validation_fraction")
        check_not_negative(self, "fold")
        check_at_least_one(self, "max_train_samples", "max_eval_samples")


SEQ2SEQ, MATH_SEQ2SEQ = "seq2seq", "math_seq2seq"
# Options that each task uses; math word problems use all of `DataArguments`.
USED_BY_ALL = ("task", "validation_fraction", "max_train_samples", "max_eval_samples")
PAIRS, GLUE = ("source", "target", "source_prefix", "text_metrics"), ("select_on_dev",)
USED_BY_TASKS = {
    **dict.fromkeys(GLUE_SOURCES, (*USED_BY_ALL, "data_dir", *GLUE)),
    SEQ2SEQ: (*USED_BY_ALL, "dataset", *PAIRS),
}


@dataclass
class TaskArguments(DataArguments):
    """[`DataArguments`], or another task with the folder of its files."""

    task: str | None = option(
        None,
        "Instead of math word problems for a solver: a task of GLUE, with its files in data_dir or else from the Hub; "
        "seq2seq, pairs of texts in dataset, a file, a folder or a Hub id; or math_seq2seq, math word problems for a "
        "sequence-to-sequence model, which writes the equation.",
        common=True,
        choices=(*GLUE_SOURCES, SEQ2SEQ, MATH_SEQ2SEQ),
    )
    select_on_dev: bool = option(
        False, "With task: train on the whole training split, and both validate and test on the development split."
    )

    source: str | None = option(
        None,
        "Task seq2seq: field or language of the source texts, such as en; column (1) of a TSV file without a header.",
        common=True,
    )
    target: str | None = option(None, "Task seq2seq: field or language of the target texts.", common=True)
    source_prefix: str = option("", "Task seq2seq: text before each source text, such as 'summarize: ' for T5.")
    text_metrics: list[str] = option(
        ["bleu", "chrf"],
        "Task seq2seq: metrics of generated texts; the first one chooses the best checkpoint. Needs hf-mwp[seq2seq].",
        choices=("bleu", "chrf", "rouge"),
    )

    def __post_init__(self):
        super().__post_init__()
        given = given_options(self)
        usual = {each.name for each in fields(DataArguments)} | {"task"}
        unused = next((name for name in given if name not in USED_BY_TASKS.get(self.task, usual)), None)
        kind = "other tasks" if unused in (*PAIRS, *GLUE) else "math word problems"
        refuse(
            {
                "`select_on_dev` is for tasks of GLUE: give a `task`, or leave it out.": (
                    self.select_on_dev and self.task not in GLUE_SOURCES
                ),
                "`validation_fraction` does nothing with `select_on_dev`: leave one of them out.": (
                    self.select_on_dev and "validation_fraction" in given
                ),
                f"`{unused}` is for {kind} and does nothing with `task` {self.task}: leave it out.": unused,
                "the task seq2seq needs a `dataset`, a `source` and a `target`, such as en and fr.": (
                    self.task == SEQ2SEQ and not {"dataset", "source", "target"} <= {*given}
                ),
            }
        )


@dataclass
class MeasuredTaskArguments(TaskArguments):
    """
    [`TaskArguments`] with a data set that must be given, unless there is a task: a solver knows one language and one
    kind of problem.
    """

    dataset: str | None = option(
        None, "Name of a data set, or a JSONL or CSV file (must be given).", common=True, locate=locate_problems
    )

    def __post_init__(self):
        super().__post_init__()
        if self.dataset is None and self.task in (None, MATH_SEQ2SEQ):
            raise ValueError(
                "a `dataset` must be given: a JSONL or CSV file, or the name of a data set in the language of the "
                "model, such as math23k (Chinese) or asdiv_a (English)."
            )
