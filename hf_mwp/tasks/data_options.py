"""Options that say what data a command reads."""

from __future__ import annotations

from dataclasses import dataclass

from ..data.datasets.sources import DEFAULT_DATASET
from ..data.glue.glue_sources import GLUE_SOURCES
from ..data.locating import locate_extra, locate_extra_texts, locate_problems
from ..options import given_options, option
from ..options.checks import check_at_least_one, check_not_negative, check_share


@dataclass
class DataArguments:
    """Which problems are read, and how they are split."""

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
        0.1,
        "Share of the training split held out if the data set has no validation split; 0: no validation.",
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
        False,
        "Add reverse-operation problems to the training problems: the answer is given, one number is unknown.",
    )
    augment_distractors: bool = option(
        False,
        "Add a copy of each training problem with one to five irrelevant numbers, in clauses of others.",
    )
    reverse_held_out: bool = option(
        False,
        "Replace validation and test problems by their reverse-operation problems.",
    )
    max_train_samples: int | None = option(None, "Train on so many problems only, for a quick try.")
    max_eval_samples: int | None = option(None, "Evaluate on so many problems only.")

    def __post_init__(self):
        check_share(self, "validation_fraction")
        check_not_negative(self, "fold")
        check_at_least_one(self, "max_train_samples", "max_eval_samples")


# What of these says something about a task of GLUE.
USED_BY_TASKS = ("task", "data_dir", "select_on_dev", "validation_fraction", "max_train_samples", "max_eval_samples")


@dataclass
class TaskArguments(DataArguments):
    """[`DataArguments`], or another task with the folder of its files."""

    task: str | None = option(
        None,
        "A task of GLUE instead of math word problems, with its files in data_dir or else from the Hub.",
        common=True,
        choices=tuple(GLUE_SOURCES),
    )
    select_on_dev: bool = option(
        False,
        "With task: train on the whole training split, and both validate and test on the development split.",
    )

    def __post_init__(self):
        super().__post_init__()
        if self.select_on_dev and self.task is None:
            raise ValueError("`select_on_dev` is for tasks of GLUE: give a `task`, or leave it out.")
        given = given_options(self)
        if self.select_on_dev and "validation_fraction" in given:
            raise ValueError("`validation_fraction` does nothing with `select_on_dev`: leave one of them out.")
        unused = [name for name in given if name not in USED_BY_TASKS]
        if self.task is not None and unused:
            raise ValueError(f"`{unused[0]}` is for math word problems and does nothing with `task`: leave it out.")


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
        if self.dataset is None and self.task is None:
            raise ValueError(
                "a `dataset` must be given: a JSONL or CSV file, or the name of a data set in the language of the "
                "model, such as math23k (Chinese) or asdiv_a (English)."
            )
