"""Functions that record the training texts of a model and of its ancestors (initial model, teacher, labeller)."""

import os
from collections.abc import Mapping
from functools import reduce
from operator import or_
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from hf_mwp.utils.downloads import download_options

from .data_error import DataError
from .load_report import dataset_report
from .training_texts import TrainingTexts, short_name


def training_texts_of(model: Any) -> TrainingTexts | None:
    """Return the training texts of a model and its ancestors, from its attribute `training_texts` or from the folder
    or Hub repository it was loaded from. Returns `None` if they are unknown, or the model is not trained yet."""
    texts = getattr(model, "training_texts", None)
    name = getattr(model, "name_or_path", None)
    if texts is None and name and not hasattr(model, "inherited_texts"):
        return TrainingTexts.load(name, **download_options(model))
    return texts


def ancestry_of(model: Any) -> TrainingTexts:
    """Return the training texts that a model passes on. If they are unknown, `unknown` contains the model's name."""
    texts = training_texts_of(model)
    if texts is None:
        texts = getattr(model, "inherited_texts", None)
    if texts is not None:
        return texts
    name = getattr(model, "name_or_path", None)
    if name:
        return TrainingTexts(unknown=(short_name(name),))
    return TrainingTexts()


def inherit_training_texts(model: Any, *sources: Any) -> None:
    """Add the training texts of `sources`, from which `model` was made, to those of `model`. For a model that is not
    trained yet, they are kept in its attribute `inherited_texts`."""
    texts = reduce(or_, map(ancestry_of, (model, *sources)))
    if getattr(model, "training_texts", None) is None:
        model.inherited_texts = texts
    else:
        model.training_texts = texts


def inherit_from_labeller(model: Any, dataset: str | os.PathLike) -> None:
    """Add the training texts of the model that created the targets in a file or folder to those of `model`."""
    inherit_training_texts(model, SimpleNamespace(training_texts=_labeller(str(dataset))))


def write_training_texts(model: Any, folder: str | os.PathLike) -> None:
    """Write the training texts of a model to its folder. If they are unknown, remove the file of a former model."""
    texts = training_texts_of(model)
    if texts is not None:
        texts.save(folder)
    else:
        (Path(folder) / TrainingTexts.file_name).unlink(missing_ok=True)


def texts_of_rows(dataset: Any) -> TrainingTexts:
    """Return digests of the rows on which a solver is trained. For pseudo-labelled rows (in `extra_train` of
    [`load_mwp_dataset`]), the training texts of the labeller are added."""
    texts = []
    if isinstance(dataset, list):
        texts = [row.get("text") for row in dataset]
    else:
        # Without a transform (`set_transform`), whose rows may have no texts.
        dataset = dataset.with_format(None)
        if "text" in dataset.column_names:
            texts = dataset["text"]
    # Other columns of this name, such as lists of words, are no texts.
    texts = [text for text in texts if isinstance(text, str)]
    if not texts:
        return TrainingTexts(unknown=("rows without texts",))
    try:
        report = dataset_report(dataset)
    except DataError:
        return TrainingTexts.from_texts(texts, sorted({_source_of(row) for row in dataset}))
    sources = [f"{report.dataset} ({report.scheme}), train", *map(short_name, report.extra)]
    return reduce(or_, map(_labeller, report.extra), TrainingTexts.from_texts(texts, sources))


def _source_of(row: Mapping[str, Any]) -> str:
    """Return the dataset and the file of a row, or `"rows"` if the row has neither."""
    names = [str(row[column]) for column in ("dataset", "file") if row.get(column)]
    return ", ".join(names) or "rows"


def _labeller(source: str) -> TrainingTexts:
    """Return the training texts of the model that labelled the problems in a file."""
    path = Path(source)
    if not path.exists():
        return TrainingTexts()
    folder = path.parent if path.is_file() else path
    texts = TrainingTexts.load(folder)
    if texts is not None:
        return texts
    if path.name == "labelled.jsonl":
        return TrainingTexts(unknown=(f"labeller of {short_name(source)}",))
    return TrainingTexts()
