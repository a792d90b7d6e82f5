"""Loading of data sets by name."""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from ...options.checks import check_share, refuse
from ...problems import add_distractors, reverse_operations
from ..corpus.pretraining_texts import held_out_texts
from ..data_error import DataError
from ..reading.file_contents import RecordReader
from ..reading.load_report import MAX_EXAMPLES, LoadReport
from ..reading.row_selection import Example, select_extra_rows, select_rows
from ..reading.schema import COLUMNS
from .file_loader import FileLoader
from .mwp_loader import Rows
from .sources import SPLITS, find_folder, find_loader, find_scheme, read_part


if TYPE_CHECKING:
    from datasets import DatasetDict

MADE = ("id", "text", "equation", "answer")  # columns of a problem that is made of another


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
    augment_reverse: bool = False,
    augment_distractors: bool = False,
    reverse_held_out: bool = False,
    keep_unusable: bool = False,
    return_report: bool = False,
) -> DatasetDict | tuple[DatasetDict, LoadReport]:
    """
    Load math word problems into one schema, with a report of the rows left out.

    Kept problems: the training split keeps problems whose equation can be read and gives their answer, if they have
    one. Validation and test splits keep all problems with one answer, even if the equation cannot be read or has
    another value, so that accuracies cover all of them. The report counts both kinds, with reasons.

    Overlap: a held-out problem overlaps if a training problem has the same text with masked numbers, so that a
    solver may have memorised it; spaces, punctuation, case, and whether a number is in digits or words make no
    difference ([`~problems.text_keys.TextKeys`]). Training problems count as read, whether they are kept or not.

    Args:
        name (`str` or `Path`): A data set of `LOADERS`, such as `"math23k"`, `"unbiasedmwp"` or `"asdiv_a"`, or a
            JSONL, JSON or CSV file, or a folder of such files (see [`FileLoader`]), or the Hub id of a data set
            repository with such files.
        data_dir (`str` or `Path`, *optional*): Folder with the data set's files, or one with a folder of the data
            set's name in it, or the Hub id of a data set repository that is like one of these. Each loader's docstring
            names its files; they may be gzipped. By default the folder that `HF_MWP_DATA_DIR` names; in a checkout of
            the repository its `examples/data`, which has `math23k`, `asdiv_a`, `mawps` and `gsm8k`. An installed
            package has no data. A `name` that is a file or folder is looked for in it.
        split_scheme (`str`, *optional*): A named public split, e.g. `"public"`, `"train_test"`, `"five_fold"` or
            `"mwptoolkit"` of math23k; `LOADERS[name].split_schemes` lists them. The first one of the list by default.
        fold (`int`, *optional*): The fold to test on, for schemes with folds, 0 by default; the others are trained on.
        on_error (`str`, *optional*, defaults to `"raise"`): Treatment of damaged records: `"raise"` raises a
            [`DataError`] that names file, line and field, `"skip"` drops and counts them.
        drop_overlap (`str` or `bool`, *optional*): `"test"`, or `True`: leave the overlapping problems out of the test
            split. `"train"`: leave them out of the training split instead. By default they are counted only.
        parse_number_words (`bool`, *optional*): Count number words as numbers when equations are checked and texts
            compared; by default in English, not in Chinese.
        validation_fraction (`float`, *optional*, defaults to 0.0): Share of the training problems to make a validation
            split of, where there is none. The choice is the same every time.
        extra_train (`Sequence[str or Path]`, *optional*): More problems to train on, in the data set's language: files
            or folders (all of it), names of data sets (their training split), or names and parts
            (`"ape210k:validation"`, `"mawps:all"`: all folds). Data sets are looked for beside this one and in
            `examples/data`. A problem is added only if its text with the numbers masked stands in no split yet, and in
            none that is held out by the looser comparison of overlaps; nor if its context begins one that is held out.
        extra_exclude (`Sequence[str or Path]`, *optional*): Whose texts, whatever their numbers, are not to be added:
            files, data sets (what they hold out), or sets and parts, such as `"ape210k:test"` if the model is to be
            evaluated on that too.
        augment_reverse (`bool`, *optional*, defaults to `False`): Add to the training problems, also those of
            `extra_train`, their reverse-operation problems, where the answer is given and one number is unknown
            ([`~problems.reverse_operations`]). They are left out as those of `extra_train` are.
        augment_distractors (`bool`, *optional*, defaults to `False`): Add to the training problems, also those of
            `extra_train` but not those reversed, each of them once more with numbers that its question does not need
            ([`~problems.add_distractors`]). They are left out as those of `extra_train` are.
        reverse_held_out (`bool`, *optional*, defaults to `False`): Replace the problems of the validation and test
            splits by their reverse-operation problems, which test whether a solver has understood them.
        keep_unusable (`bool`, *optional*, defaults to `False`): Keep problems in all splits whatever is wrong with
            them, e.g. for pretraining on their texts.
        return_report (`bool`, *optional*, defaults to `False`): Whether to return the report too. [`dataset_report`]
            gives it later on.

    Returns:
        `DatasetDict`, or with `return_report` a tuple of it and a [`LoadReport`]: splits `"train"`, `"validation"` and
        `"test"` as far as the data set has them; columns `id`, `text`, `equation`, `answer`, `language`, `context`,
        `kind`, `dataset`, `fold`, `file` and `line` (`hf_mwp.data.FEATURES`), all as the source has them.
        [`problem_from_row`] makes a problem of a row.

    Raises:
        DataError: for missing files, damaged records and an unknown name.
        ValueError: for an unknown split scheme, fold or option.
    """
    loader = find_loader(name, data_dir)
    scheme, fold = find_scheme(loader, name, split_scheme, fold)
    side = _check_options(on_error, drop_overlap, validation_fraction)
    folder = find_folder(loader, data_dir)
    reader = RecordReader(folder, on_error, loader.origin)
    splits = loader.read(reader, scheme, fold)
    title = Path(name).name if isinstance(loader, FileLoader) else str(name)
    report = LoadReport(title, str(folder), scheme, fold, drop_overlap=side, damaged=len(reader.damaged))
    report.damaged_examples = [str(error) for error in reader.damaged[:MAX_EXAMPLES]]
    if validation_fraction and "validation" not in splits and "train" in splits:
        report.validation_fraction = validation_fraction
        rows = splits["train"]
        chosen = set(random.Random(0).sample(range(len(rows)), round(validation_fraction * len(rows))))
        splits["validation"] = [rows[index] for index in sorted(chosen)]
        splits["train"] = [row for index, row in enumerate(rows) if index not in chosen]

    examples = {split: _examples(splits[split], parse_number_words) for split in SPLITS if split in splits}
    report.reversed_held_out = reverse_held_out
    if reverse_held_out:
        examples |= {split: _make("reversed", part, name) for split, part in examples.items() if split != "train"}
    adds = bool(extra_train or augment_reverse or augment_distractors)
    kept, report.splits = select_rows(examples, keep_unusable, side, keep_problems=adds)
    if adds:
        listed = [extra_train] if isinstance(extra_train, (str, Path)) else extra_train
        extra = {
            str(source): _examples(_read_extra(source, examples, folder, on_error, report), parse_number_words)
            for source in listed
        }
        excluded = list(held_out_texts(extra_exclude, folder))
        added, report.extra = select_extra_rows(extra, examples, keep_unusable, excluded)
        kept["train"] = kept.get("train", []) + added
        known = examples | {"train": [*examples.get("train", ()), *added]}
        kinds = {"distractors": augment_distractors, "reversed": augment_reverse}
        made = {kind: _make(kind, kept["train"], name) for kind, wanted in kinds.items() if wanted}
        added, reports = select_extra_rows(made, known, keep_unusable, excluded)
        report.extra |= reports
        kept["train"] += added
    datasets = _to_datasets(kept, report)
    return (datasets, report) if return_report else datasets


def _examples(rows: Rows, parse_number_words: bool | None) -> list[Example]:
    return [Example(row, parse_number_words) for row in rows]


def _check_options(on_error: str, drop_overlap: str | bool | None, validation_fraction: float) -> str | None:
    """Check the options and return the split that loses its overlapping problems."""
    check_share({"validation_fraction": validation_fraction}, "validation_fraction")
    side = "test" if drop_overlap is True else drop_overlap or None
    refuse(
        {
            f"`on_error` must be 'raise' or 'skip', not {on_error!r}": on_error not in ("raise", "skip"),
            f"`drop_overlap` must be 'test', 'train' or None, not {drop_overlap!r}": side
            not in ("train", "test", None),
        }
    )
    return side


def _read_extra(
    source: str | Path, splits: dict[str, list[Example]], folder: Path, on_error: str, report: LoadReport
) -> Rows:
    """Read rows to add to the training split, in its language."""
    if "train" not in splits:
        raise DataError("there is no training split to add problems to", source)
    language = next((each.row["language"] for each in splits["train"]), None)
    rows, damaged = read_part(source, folder, on_error, language or "en")
    for row in rows:
        if language is not None and row["language"] != language:
            fault = f"the text is in another language ({row['language']}) than the data set ({language})"
            raise DataError(fault, row["file"], row["line"], "language")
    report.damaged += len(damaged)
    report.damaged_examples += [str(error) for error in damaged[: MAX_EXAMPLES - len(report.damaged_examples)]]
    return rows


def _make(kind: str, examples: list[Example], name: str | Path) -> list[Example]:
    """Make problems of others, `"distractors"` or `"reversed"`, which share no context with other questions."""
    if not examples:
        raise DataError("there is no problem to make others of", name)
    problems = [each.problem for each in examples]
    if kind == "distractors":
        made = [() if new is None else (new,) for new in add_distractors(problems)]
    else:
        made = map(reverse_operations, problems)
    found = []
    for each, news in zip(examples, made, strict=True):
        for new in news:
            columns = {name: getattr(new, name) for name in MADE} | {"context": ""}
            found.append(Example(each.row | columns, each.parse_number_words))
    return found


def _to_datasets(splits: dict[str, list[Example]], report: LoadReport) -> DatasetDict:
    from datasets import Dataset, DatasetDict, DatasetInfo

    from ..reading.schema import FEATURES

    info = DatasetInfo(description=json.dumps(report.to_dict(), ensure_ascii=False), features=FEATURES)
    return DatasetDict(
        {
            split: Dataset.from_dict({column: [each.row[column] for each in part] for column in COLUMNS}, info=info)
            for split, part in splits.items()
        }
    )
