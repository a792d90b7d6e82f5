"""Functions that record the training texts of a model and of its ancestors (initial model, teacher, labeller)."""

import os
from dataclasses import dataclass
from functools import reduce
from operator import or_
from pathlib import Path
from typing import Any, Self

from ..downloads import download_options
from .data_error import DataError
from .reading.load_report import dataset_report
from .training_texts import TrainingTexts, short_name


@dataclass(frozen=True)
class Lineage:
    """
    Training texts of a model, stored in its attribute `lineage`.

    Args:
        trained_on ([`TrainingTexts`], *optional*): Training texts of the model and of all its ancestors.
        inherited ([`TrainingTexts`], *optional*): Training texts of the ancestors of a model that is not trained yet.
    """

    trained_on: TrainingTexts | None = None
    inherited: TrainingTexts | None = None

    @classmethod
    def of(cls, model: Any) -> Self:
        """Return the lineage of a model, read from the model or the folder or Hub repository it was loaded from."""
        noted, name = getattr(model, "lineage", cls()), getattr(model, "name_or_path", None)
        if noted == cls() and name:
            return cls(TrainingTexts.load(name, **download_options(model)))
        return noted


def training_texts_of(model: Any) -> TrainingTexts | None:
    """Return the training texts of a model and its ancestors, or `None` if they are unknown."""
    return Lineage.of(model).trained_on


def ancestry_of(model: Any) -> TrainingTexts:
    """Return the training texts that a model passes on. If they are unknown, `unknown` contains the model's name."""
    lineage, name = Lineage.of(model), getattr(model, "name_or_path", None)
    for known in (lineage.trained_on, lineage.inherited):
        if known is not None:
            return known
    return TrainingTexts(unknown=(short_name(name),) if name else ())


def note_training_texts(model: Any, texts: TrainingTexts) -> None:
    """Record the training texts of a model and its ancestors."""
    model.lineage = Lineage(trained_on=texts)


def inherit_training_texts(model: Any, *sources: Any) -> None:
    """Add the training texts of `sources`, from which `model` was made, to the training texts of `model`."""
    united = reduce(or_, (ancestry_of(each) for each in (model, *sources)))
    trained = getattr(model, "lineage", Lineage()).trained_on is not None
    model.lineage = Lineage(trained_on=united) if trained else Lineage(inherited=united)


def write_training_texts(model: Any, folder: str | os.PathLike) -> None:
    """Write the training texts of a model to its folder. If they are unknown, remove the file of a former model."""
    texts = training_texts_of(model)
    if texts is not None:
        texts.save(folder)
    else:
        (Path(folder) / TrainingTexts.file_name).unlink(missing_ok=True)


def texts_of_rows(dataset: Any) -> TrainingTexts:
    """
    Return digests of the rows on which a solver is trained. For pseudo-labelled rows (in `extra_train` of
    [`load_mwp_dataset`]), the training texts of the labeller are added.
    """
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
        places = ([str(row[name]) for name in ("dataset", "file") if row.get(name)] for row in dataset)
        return TrainingTexts.from_texts(texts, sorted({", ".join(place) or "rows" for place in places}))
    sources = [f"{report.dataset} ({report.scheme}), train", *map(short_name, report.extra)]
    return reduce(or_, map(_labeller, report.extra), TrainingTexts.from_texts(texts, sources))


def _labeller(source: str) -> TrainingTexts:
    """Return the training texts of the model that labelled the problems in a file."""
    path = Path(source)
    known = TrainingTexts.load(path.parent if path.is_file() else path) if path.exists() else TrainingTexts()
    if known is None:
        return TrainingTexts(unknown=(f"labeller of {short_name(source)}",) if path.name == "labelled.jsonl" else ())
    return known
