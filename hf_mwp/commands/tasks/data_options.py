"""Options that select the task and the data of a command."""

from dataclasses import dataclass

from hf_mwp.commands.options.locating import locate_glue, locate_problems, locate_source, locate_texts
from hf_mwp.solver.data.file_format import FileArguments
from hf_mwp.solver.data.sources import DEFAULT_DATASET
from hf_mwp.utils.checks import check_at_least_one, check_not_negative, check_share, check_weight
from hf_mwp.utils.option import given_options, option, options_in

from .glue_files import GLUE_SOURCES


@dataclass
class DataArguments(FileArguments):
    """Options that select the problems and their splits."""

    _argument_group_name = "data"

    dataset: str = option(
        DEFAULT_DATASET,
        "Name of a dataset (math23k, asdiv_a, mawps, gsm8k, ...), a JSON lines, JSON or CSV file with the fields "
        "text, equation and answer (or others, see columns), or a folder of such files (train, validation, test).",
        common=True,
        locate=locate_problems,
    )
    data_dir: str | None = option(
        None, "Folder of the dataset's files; the loader's default folder if not given.", locate=locate_glue
    )
    split_scheme: str | None = option(None, "Public split or fold scheme; the dataset's usual scheme if not given.")
    fold: int | None = option(None, "Fold to hold out, for datasets with folds.", common=True)
    on_error: str = option("raise", "Stop at a damaged row, or skip and count it.", choices=("raise", "skip"))
    drop_overlap: str | None = option(
        None, "Split that loses the problems whose masked text is in training and test.", choices=("test", "train")
    )
    parse_number_words: bool | None = option(
        None, "Read number words as numbers; by default in English, and in Chinese texts without digits."
    )
    validation_fraction: float = option(0.1, "Share of training rows held out without a validation split; 0: none.")
    extra_train: list[str] | None = option(
        None,
        "Additional training problems: files, datasets (their training split), or datasets with a split "
        "(ape210k:validation, mawps:all). Problems whose text with masked numbers is in the dataset are left out.",
        common=True,
        locate=locate_source,
    )
    extra_exclude: list[str] | None = option(
        None, "Files, datasets or splits; problems with their masked texts are not added.", locate=locate_texts
    )
    solve_equations: bool = option(
        False, "Solve equations with one unknown (6*x+4*(10-x)=50) for it, instead of leaving out the problems."
    )
    augment_reverse: bool = option(False, "Add reversed training problems: the answer is given, a number is unknown.")
    augment_distractors: bool = option(False, "Add copies of training problems with irrelevant numbers.")
    augment_properties: bool = option(
        False, "Add copies of English training problems with irrelevant weights, ages, temperatures and the like."
    )
    augment_comparisons: bool = option(False, "Add English problems that compare or add some of several counts.")
    augment_units: bool = option(False, "Add copies of training problems with a quantity or question in another unit.")
    augment_wording: float = option(
        0.0, "Share of the training problems that are worded as people type them (块钱, bucks, no question mark)."
    )
    augment_writing: float = option(
        0.0,
        "Share of the training problems whose numbers are written in other forms (三个, half); set number_reading to "
        "people, too.",
    )
    reverse_held_out: bool = option(False, "Replace validation and test problems with their reversed problems.")
    max_train_samples: int | None = option(None, "Maximum number of training problems, for a quick test.")
    max_eval_samples: int | None = option(None, "Maximum number of problems in an evaluation.")

    def __post_init__(self):
        super().__post_init__()
        check_share(self, "validation_fraction")
        check_weight(self, "augment_wording", "augment_writing")
        check_not_negative(self, "fold")
        check_at_least_one(self, "max_train_samples", "max_eval_samples")


SEQ2SEQ = "seq2seq"
MATH_SEQ2SEQ = "math_seq2seq"
# Values of `--task`, the names in [`~tasks.make_task.TASKS`].
TASK_NAMES = [*GLUE_SOURCES, SEQ2SEQ, MATH_SEQ2SEQ]
# Options that each task uses; math word problems use all of `DataArguments`.
USED_BY_ALL = ("task", "validation_fraction", "max_train_samples", "max_eval_samples")
PAIRS = ("source", "target", "source_prefix", "text_metrics")
GLUE = ("select_on_dev",)
USED_BY_TASKS = {
    **dict.fromkeys(GLUE_SOURCES, (*USED_BY_ALL, "data_dir", *GLUE)),
    SEQ2SEQ: (*USED_BY_ALL, "dataset", *PAIRS),
}


@dataclass
class TaskArguments(DataArguments):
    """[`DataArguments`] and the options of tasks that are not math word problems."""

    task: str | None = option(
        None,
        "Task instead of math word problems for a solver: a GLUE task, with its files in data_dir or from the Hub; "
        "seq2seq, with pairs of texts in dataset (file, folder or Hub id); or math_seq2seq, math word problems for a "
        "sequence-to-sequence model, which generates the equation.",
        common=True,
        choices=TASK_NAMES,
    )
    select_on_dev: bool = option(False, "GLUE tasks: both validate and test on the development split.")
    source: str | None = option(
        None,
        "Task seq2seq: field or language of the source texts, such as en; for a TSV file without header a column (1). "
        "mBART, M2M100 and NLLB read texts in this language, if it is one of theirs.",
        common=True,
    )
    target: str | None = option(None, "Task seq2seq: field or language of the target texts.", common=True)
    source_prefix: str = option("", "Task seq2seq: prefix of each source text, such as 'summarize: ' for T5.")
    text_metrics: list[str] = option(
        ["bleu", "chrf"],
        "Task seq2seq: metrics of generated texts; the first metric chooses the checkpoint. Needs hf-mwp[seq2seq].",
        choices=("bleu", "chrf", "rouge"),
    )

    def __post_init__(self):
        super().__post_init__()
        given_names = given_options(self)
        used = USED_BY_TASKS.get(self.task, (*options_in(DataArguments), "task"))
        if self.select_on_dev and "validation_fraction" in given_names:
            raise ValueError("`validation_fraction` has no effect with `select_on_dev`. Remove one of the two.")
        for name in given_names:
            if name in used:
                continue
            tasks = "math word problems"
            if name in GLUE:
                tasks = "GLUE tasks"
            elif name in PAIRS:
                tasks = "seq2seq"
            raise ValueError(f"`{name}` applies only to {tasks}, not to `task` {self.task}. Remove it.")
        if self.task == SEQ2SEQ and not {"dataset", "source", "target"} <= set(given_names):
            raise ValueError("the task seq2seq needs `dataset`, `source` and `target`, such as en and fr. Set all.")


@dataclass
class MeasuredTaskArguments(TaskArguments):
    """[`TaskArguments`] without a default dataset, because a trained solver supports only one language."""

    dataset: str | None = option(
        None, "Name or file of a dataset, as for `hf-mwp train` (must be given).", common=True, locate=locate_problems
    )

    def __post_init__(self):
        super().__post_init__()
        if self.dataset is None and self.task in (None, MATH_SEQ2SEQ):
            raise ValueError("`dataset` is not set. Pass a file or the name of a dataset, such as math23k or asdiv_a.")
