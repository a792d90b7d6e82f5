"""Options that say what data a command reads."""

from __future__ import annotations

from dataclasses import dataclass, field

from ..data.datasets.sources import DEFAULT_DATASET
from ..option_checks import check_at_least_one, check_not_negative, check_share


@dataclass
class DataArguments:
    """Which problems are read, and how they are split."""

    _argument_group_name = "data"

    dataset: str = field(
        default=DEFAULT_DATASET, metadata={"help": "Name of a data set, or a JSONL or CSV file of the common schema."}
    )
    data_dir: str | None = field(default=None, metadata={"help": "Folder of the data set's files."})
    split_scheme: str | None = field(
        default=None, metadata={"help": "Named public split or fold scheme; the data set's usual one if not given."}
    )
    fold: int | None = field(default=None, metadata={"help": "Fold to hold out, for data sets with folds."})
    on_error: str = field(
        default="raise",
        metadata={
            "help": "What a damaged record does: stop, or be skipped and counted.",
            "choices": ["raise", "skip"],
        },
    )
    drop_overlap: str | None = field(
        default=None,
        metadata={
            "help": "Where to leave out problems whose masked text is in both parts; kept in both if not given.",
            "choices": ["test", "train"],
        },
    )
    numerals: bool | None = field(
        default=None, metadata={"help": "Whether number words are numbers; in English only if not given."}
    )
    validation_fraction: float = field(
        default=0.1,
        metadata={"help": "Share of the training part held out for validation where the data set has no such part."},
    )
    extra_train: list[str] | None = field(
        default=None,
        metadata={
            "help": "More problems to train on: files, names of data sets, or names and parts (ape210k:validation, "
            "mawps:all); those whose masked text is in the data set are left out."
        },
    )
    extra_exclude: list[str] | None = field(
        default=None,
        metadata={
            "help": "Whose texts, whatever their numbers, are not to be among the added: what the model is to be "
            "evaluated on besides."
        },
    )
    max_train_samples: int | None = field(default=None, metadata={"help": "Train on so many problems only."})
    max_eval_samples: int | None = field(default=None, metadata={"help": "Evaluate on so many problems only."})

    def __post_init__(self):
        check_share(self, "validation_fraction")
        check_not_negative(self, "fold")
        check_at_least_one(self, "max_train_samples", "max_eval_samples")


@dataclass
class MeasuredDataArguments(DataArguments):
    """[`DataArguments`] with a data set that must be given: a solver knows one language and one kind of problem."""

    dataset: str | None = field(
        default=None, metadata={"help": "Name of a data set, or a JSONL or CSV file (must be given)."}
    )

    def __post_init__(self):
        super().__post_init__()
        if self.dataset is None:
            raise ValueError(
                "a `dataset` must be given: a JSONL or CSV file, or the name of a data set in the language of the "
                "model, such as math23k (Chinese) or asdiv_a (English)."
            )
