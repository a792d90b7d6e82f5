"""Function that loads a dataset of math word problems by name."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from hf_mwp.runtime.problems import (
    MathWordProblem,
    add_distractors,
    add_properties,
    compare_counts,
    convert_units,
    reverse_operations,
    reword_casually,
    rewrite_numbers,
)
from hf_mwp.solver.corpus.pretraining_texts import held_out_texts
from hf_mwp.utils.checked_types import checked
from hf_mwp.utils.checks import check_share, check_weight

from .data_error import DataError
from .file_format import FileFormat
from .load_report import LoadReport, SplitReport
from .mwp_loader import FileLoader, changed_columns
from .record import Rows
from .row_selection import Example, select_extra_rows, select_rows
from .schema import COLUMNS
from .sources import SPLITS, find_folder, find_loader, find_scheme, make_reader, read_part
from .splits import hold_out
from .usability import with_solved_equation


if TYPE_CHECKING:
    from datasets import DatasetDict


@checked
def load_mwp_dataset(
    name: str | Path,
    data_dir: str | Path | None = None,
    split_scheme: str | None = None,
    fold: int | None = None,
    on_error: str = "raise",
    drop_overlap: str | bool | None = None,
    parse_number_words: bool | None = None,
    validation_fraction: float = 0.0,
    extra_train: Sequence[str | Path] | str | Path = (),
    extra_exclude: Sequence[str | Path] | str | Path = (),
    solve_equations: bool = False,
    augment_reverse: bool = False,
    augment_distractors: bool = False,
    augment_properties: bool = False,
    augment_comparisons: bool = False,
    augment_units: bool = False,
    augment_wording: float = 0.0,
    augment_writing: float = 0.0,
    reverse_held_out: bool = False,
    keep_unusable: bool = False,
    return_report: bool = False,
    columns: Mapping[str, str] | None = None,
    encoding: str | None = None,
    separator: str | None = None,
) -> DatasetDict | tuple[DatasetDict, LoadReport]:
    """Load math word problems into one schema, with a report of excluded rows.

    Kept problems: the training split keeps problems whose equation can be parsed and has the answer as its value. A
    training problem without an answer needs an equation with a value. Validation and test splits keep all problems
    with exactly one answer, even if the equation is invalid or has a different value, so that accuracies cover all
    problems. The report counts excluded problems and faulty problems that are kept, by reason.

    Overlap: a held-out problem overlaps if a training problem (kept or excluded) has the same text with masked
    numbers, because a solver may have memorised it. Spaces, punctuation, case, and digits or words for a number are
    ignored ([`~problems.text_keys.TextKeys`]).

    Args:
        name (`str` or `Path`): A dataset of `LOADERS`, such as `"math23k"`, `"unbiasedmwp"` or `"asdiv_a"`; a JSONL,
            JSON or CSV file, or a folder or Hub repository of such files (see [`FileLoader`]).
        data_dir (`str` or `Path`, *optional*): Folder or Hub repository with the dataset's files, or with a folder of
            the dataset's name. The docstring of each loader lists the files, which may be gzipped. Defaults to the
            folder `HF_MWP_DATA_DIR` or, in a checkout of the repository, `examples/data` (`math23k`, `asdiv_a`,
            `mawps` and `gsm8k`). The path of a file or folder `name` is relative to `data_dir`.
        split_scheme (`str`, *optional*): Split scheme, for example `"public"`, `"train_test"`, `"five_fold"` or
            `"mwptoolkit"` of math23k. Defaults to the first scheme in `LOADERS[name].split_schemes`.
        fold (`int`, *optional*): Fold for the test split, in schemes with folds. Defaults to 0.
        on_error (`str`, *optional*, defaults to `"raise"`): `"raise"` raises a [`DataError`] with file, line and field
            for a damaged record, `"skip"` leaves it out and counts it.
        drop_overlap (`str` or `bool`, *optional*): `"test"` or `True` excludes overlapping problems from the test
            split, `"train"` from the training split. By default they are kept and counted.
        parse_number_words (`bool`, *optional*): Whether number words count as numbers when equations are checked and
            texts are compared. By default they do in English, and in Chinese texts without digits.
        validation_fraction (`float`, *optional*, defaults to 0.0): Share of the training problems that become the
            validation split if the dataset has none. The choice is always the same.
        extra_train (`Sequence[str or Path]`, *optional*): Additional training problems in the language of the dataset:
            files or folders, names of datasets (their training split), or names with a split (`"ape210k:validation"`;
            `"mawps:all"` for all folds). Datasets are searched for next to this dataset and in `examples/data`. A
            problem, also an augmented one, is added only if no split has the same text with masked numbers, no
            held-out problem overlaps with it, and no held-out problem begins with its context.
        extra_exclude (`Sequence[str or Path]`, *optional*): Files, datasets (their held-out splits), or datasets with
            a split (`"ape210k:test"`) whose texts must not be added. Numbers in the texts are ignored.
        solve_equations (`bool`, *optional*, defaults to `False`): Solve equations with one unknown, such as
            `6*x+4*(10-x)=50`, for the unknown. By default, problems with such equations are left out of the training
            split.
        augment_reverse (`bool`, *optional*, defaults to `False`): Add the reverse-operation problems of all training
            problems (with `extra_train`): the answer is given, a number unknown ([`~problems.reverse_operations`]).
        augment_distractors (`bool`, *optional*, defaults to `False`): Add copies of all training problems (with
            `extra_train`) with numbers that the question does not need ([`~problems.add_distractors`]).
        augment_properties (`bool`, *optional*, defaults to `False`): Add copies of all English training problems (with
            `extra_train`) with irrelevant weights, ages, temperatures and the like ([`~problems.add_properties`]).
        augment_comparisons (`bool`, *optional*, defaults to `False`): Add English problems that ask for the difference
            or sum of some of several counts ([`~problems.compare_counts`]).
        augment_units (`bool`, *optional*, defaults to `False`): Add copies of all training problems (with
            `extra_train`) in which a quantity or the question has a different unit ([`~problems.convert_units`]).
        augment_wording (`float`, *optional*, defaults to 0.0): Share of the training problems (with `extra_train` and
            augmented problems) that are worded as people type them ([`~problems.reword_casually`]).
        augment_writing (`float`, *optional*, defaults to 0.0): Share of the training problems (with `extra_train` and
            augmented problems) of which numbers are written in other forms ([`~problems.rewrite_numbers`]). Train a
            solver with `number_reading="people"`, which reads them.
        reverse_held_out (`bool`, *optional*, defaults to `False`): Replace the validation and test problems by their
            reverse-operation problems, which test whether a solver understands them.
        keep_unusable (`bool`, *optional*, defaults to `False`): Keep faulty problems in all splits, for example to
            pretrain on their texts.
        return_report (`bool`, *optional*, defaults to `False`): Also return the [`LoadReport`] ([`dataset_report`]).
        columns (`Mapping[str, str]`, *optional*): Names of the fields in files of problems, for example `{"text":
            "question", "answer": "result"}`. The keys are `"text"`, `"equation"`, `"answer"`, `"id"`, `"body"`,
            `"language"` and `"context"`. A file of `extra_train` or `extra_exclude` without such a field is read by
            the usual names.
        encoding (`str`, *optional*): Encoding of files of problems. By default UTF-8, UTF-16 with a byte order mark,
            and Chinese in GB 18030 (GBK, GB2312) are detected.
        separator (`str`, *optional*): Separator of the columns in CSV files. By default comma, semicolon, tab and `|`
            are detected.

    Returns:
        `DatasetDict`: the splits `"train"`, `"validation"` and `"test"` that the dataset has, with the columns
        `hf_mwp.solver.data.FEATURES`. [`problem_from_row`] converts a row to a problem.

    Raises:
        DataError: Files are missing, a record is damaged, or the name is unknown.
        ValueError: A split scheme, fold or option is unknown.
    """
    file_format = FileFormat(columns or {}, encoding, separator)
    loader = find_loader(name, data_dir, file_format=file_format, usual_names=False)
    is_file = isinstance(loader, FileLoader)
    if file_format != FileFormat() and not is_file and not extra_train and not extra_exclude:
        raise ValueError(f"`columns`, `encoding` and `separator` describe files of problems, not {name}. Omit them.")
    scheme, fold = find_scheme(loader, name, split_scheme, fold)
    overlap_split = _check_options(on_error, drop_overlap, validation_fraction)
    shares = {"augment_wording": augment_wording, "augment_writing": augment_writing}
    check_weight(shares, *shares)

    # Read the rows of the files.
    folder = find_folder(loader, data_dir)
    reader = make_reader(loader, folder, on_error)
    splits = loader.read(reader, scheme, fold)
    title = Path(name).name if is_file else str(name)
    report = LoadReport(title, folder.resolve().name, scheme, fold, 0.0, reverse_held_out, overlap_split)
    report.add_damaged(reader.damaged)
    if validation_fraction and "validation" not in splits and "train" in splits:
        report.validation_fraction = validation_fraction
        splits["train"], splits["validation"] = hold_out(splits["train"], validation_fraction)

    # Select the usable rows.
    examples: dict[str, list[Example]] = {}
    for split in SPLITS:
        if split in splits:
            examples[split] = _make_examples(splits[split], parse_number_words, solve_equations)
            if reverse_held_out and split != "train":
                examples[split] = _augment("reversed", examples[split], name)
    augmentations = {
        "distractors": augment_distractors,
        "properties": augment_properties,
        "comparisons": augment_comparisons,
        "units": augment_units,
        "reversed": augment_reverse,
    }
    methods = [method for method, is_used in augmentations.items() if is_used]
    adds_problems = bool(extra_train or methods)
    usable, report.splits = select_rows(examples, keep_unusable, overlap_split, keep_problems=adds_problems)

    # Add and change training problems.
    if adds_problems:
        extra = {}
        for source in [extra_train] if isinstance(extra_train, (str, Path)) else extra_train:
            rows = _read_extra(source, examples, folder, on_error, report, file_format)
            extra[str(source)] = _make_examples(rows, parse_number_words, solve_equations)
        excluded = list(held_out_texts(extra_exclude, folder, file_format))
        report.extra = _add_problems(usable, examples, extra, methods, name, keep_unusable, excluded)
    for rewrite, share in ((reword_casually, augment_wording), (rewrite_numbers, augment_writing)):
        if share:
            usable["train"] = _rewrite(usable.get("train", []), rewrite, share)
    datasets = _to_datasets(usable, report)
    return (datasets, report) if return_report else datasets


def _make_examples(rows: Rows, parse_number_words: bool | None, solve_equations: bool) -> list[Example]:
    if solve_equations:
        rows = map(with_solved_equation, rows)
    return [Example(row, parse_number_words) for row in rows]


def _check_options(on_error: str, drop_overlap: str | bool | None, validation_fraction: float) -> str | None:
    """Check the options, and return the split from which overlapping problems are excluded, or `None`."""
    check_share({"validation_fraction": validation_fraction}, "validation_fraction")
    split = drop_overlap or None
    if drop_overlap is True:
        split = "test"
    if on_error not in ("raise", "skip") or split not in ("train", "test", None):
        raise ValueError(
            "`on_error` must be 'raise' or 'skip', and `drop_overlap` 'test', 'train' or None, got "
            f"{on_error!r} and {drop_overlap!r}."
        )
    return split


def _read_extra(
    source: str | Path,
    splits: dict[str, list[Example]],
    folder: Path,
    on_error: str,
    report: LoadReport,
    file_format: FileFormat,
) -> Rows:
    """Read rows to add to the training split, and check that they have the same language."""
    if "train" not in splits:
        raise DataError("there is no training split to add problems to", source)
    language = None
    if splits["train"]:
        language = splits["train"][0].row["language"]
    rows, damaged = read_part(source, folder, on_error, language or "en", file_format=file_format)
    for row in rows:
        if language is not None and row["language"] != language:
            fault = f"the language of the text is {row['language']}, but the language of the dataset is {language}"
            raise DataError(fault, row["file"], row["line"], "language")
    report.add_damaged(damaged)
    return rows


def _add_problems(
    usable: dict[str, list[Example]],
    examples: Mapping[str, list[Example]],
    extra: Mapping[str, list[Example]],
    methods: Sequence[str],
    name: str | Path,
    keep_unusable: bool,
    excluded: list[str],
) -> dict[str, SplitReport]:
    """Add `extra` problems, then problems made from all by these augmentation `methods`, to the training problems in
    `usable`, and return the reports. See [`select_extra_rows`] for the other arguments."""
    added, reports = select_extra_rows(extra, examples, keep_unusable, excluded)
    usable["train"] = usable.get("train", []) + added
    present = {**examples, "train": [*examples.get("train", ()), *added]}
    augmented = {method: _augment(method, usable["train"], name) for method in methods}
    added, augmentation_reports = select_extra_rows(augmented, present, keep_unusable, excluded)
    usable["train"] += added
    return reports | augmentation_reports


def _augment(method: str, examples: list[Example], name: str | Path) -> list[Example]:
    """Create problems without context from examples; `method` is a key of `_AUGMENTATIONS`."""
    if not examples:
        raise DataError("there are no problems to augment", name)
    problems = [example.problem for example in examples]
    new_examples = []
    for example, problems_of_example in zip(examples, _AUGMENTATIONS[method](problems), strict=True):
        for problem in problems_of_example:
            new_example = _changed(example, problem, context="")
            if problem.parse_number_words == example.parse_number_words:
                # The numbers and the equation of the new problem are parsed already.
                vars(new_example)["problem"] = problem
            new_examples.append(new_example)
    return new_examples


def _reversed(problems: Sequence[MathWordProblem]) -> Iterator[list[MathWordProblem]]:
    return map(reverse_operations, problems)


def _at_most_one(augment: Callable) -> Callable[[Sequence[MathWordProblem]], Iterator[list[MathWordProblem]]]:
    """Return a function that yields a list for each problem: with the problem of `augment`, or empty for `None`."""

    def augment_each(problems: Sequence[MathWordProblem]) -> Iterator[list[MathWordProblem]]:
        for problem in augment(problems):
            yield [] if problem is None else [problem]

    return augment_each


# Functions that yield the new problems of each problem.
_AUGMENTATIONS = {
    "distractors": _at_most_one(add_distractors),
    "properties": _at_most_one(add_properties),
    "comparisons": compare_counts,
    "units": _at_most_one(convert_units),
    "reversed": _reversed,
}


def _rewrite(
    examples: list[Example], rewrite: Callable[..., Iterable[MathWordProblem | None]], share: float
) -> list[Example]:
    """Return the examples, a share of them as the function `rewrite` writes them."""
    problems = [example.problem for example in examples]
    result = []
    for example, problem in zip(examples, rewrite(problems, share=share), strict=True):
        if problem is not None:
            example = _changed(example, problem)
        result.append(example)
    return result


def _changed(example: Example, problem: MathWordProblem, **columns) -> Example:
    """Return an example with the text, equation and answer of a problem that was made from it."""
    return Example(example.row | changed_columns(problem) | columns, example.parse_number_words)


def _to_datasets(splits: dict[str, list[Example]], report: LoadReport) -> DatasetDict:
    from datasets import Dataset, DatasetDict, DatasetInfo

    from .schema import FEATURES

    info = DatasetInfo(description=json.dumps(report.to_dict(), ensure_ascii=False), features=FEATURES)
    datasets = DatasetDict()
    for split, examples in splits.items():
        columns = {}
        for column in COLUMNS:
            columns[column] = [example.row[column] for example in examples]
        datasets[split] = Dataset.from_dict(columns, info=info)
    return datasets
