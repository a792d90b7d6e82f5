"""What models were trained on, from one to the next: starts, teachers, labellers."""

import os
from functools import reduce
from operator import or_
from pathlib import Path
from typing import Any

from .downloads import download_options
from .training_texts import TrainingTexts, short_name


def training_texts_of(model: Any) -> TrainingTexts | None:
    """
    What a model was trained on, itself and all that it comes from: as its trainer noted it (`model.training_texts`),
    or as the folder or Hub repository that it was loaded from says. `None` if neither says anything.
    """
    noted = getattr(model, "training_texts", None)
    name = getattr(model, "name_or_path", None)
    if noted is not None or not name:
        return noted
    noted = getattr(model, "ancestors", None)
    return TrainingTexts.load(name, **download_options(model)) if noted is None else noted


def ancestry_of(model: Any) -> TrainingTexts:
    """
    What is known of a model that another one is made of: its [`training_texts_of`], or what it came from itself
    (`model.ancestors`). A model that was loaded and says nothing is named as not known; one that was not loaded is
    taken for random weights.
    """
    known = training_texts_of(model)
    known = getattr(model, "ancestors", None) if known is None else known
    if known is not None:
        return known
    name = getattr(model, "name_or_path", None)
    return TrainingTexts(unknown=(short_name(name),) if name else ())


def inherit_training_texts(model: Any, *sources: Any) -> None:
    """Notes that weights of `sources` went into `model`: its trainer adds what they were trained on."""
    united = reduce(or_, (ancestry_of(each) for each in (model, *sources)))
    if getattr(model, "training_texts", None) is not None:
        model.training_texts = united
    else:
        model.ancestors = united


def write_training_texts(model: Any, folder: str | os.PathLike) -> None:
    """Writes [`training_texts_of`] a model to the folder that it is saved to. If they are not known, a file that is
    there goes: it belongs to a model of before."""
    texts = training_texts_of(model)
    if texts is not None:
        texts.save(folder)
    else:
        (Path(folder) / TrainingTexts.file_name).unlink(missing_ok=True)


def texts_of_rows(dataset: Any) -> TrainingTexts:
    """
    Digests of the rows of [`load_mwp_dataset`], which a solver is trained on. Where they were loaded with
    `extra_train`, of which a file was written by `hf-mwp pseudo-label`, what its labeller was trained on is added.
    """
    from .data_error import DataError
    from .reading.load_report import dataset_report

    if isinstance(dataset, list):
        columns = set(dataset[0]) if dataset else set()
        texts = [row.get("text") for row in dataset]
    else:
        columns = set(dataset.column_names)
        texts = dataset["text"] if "text" in columns else ()
    if "text" not in columns:
        return TrainingTexts(unknown=("rows without texts",))
    try:
        report = dataset_report(dataset)
    except (DataError, AttributeError):
        return TrainingTexts.from_texts(texts, sorted({_origin(row) for row in dataset}))
    sources = [f"{report.dataset} ({report.scheme}), train", *map(short_name, report.extra)]
    return reduce(or_, map(_labeller, report.extra), TrainingTexts.from_texts(texts, sources))


def _origin(row: dict) -> str:
    return ", ".join(str(row[name]) for name in ("dataset", "file") if row.get(name)) or "rows"


def _labeller(source: str) -> TrainingTexts:
    """What is known of the model that labelled the problems of a file."""
    path = Path(source)
    if not path.exists():
        return TrainingTexts()
    known = TrainingTexts.load(path.parent if path.is_file() else path)
    if known is None:
        return TrainingTexts(unknown=(f"labeller of {short_name(source)}",) if path.name == "labelled.jsonl" else ())
    return known
