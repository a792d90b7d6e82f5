"""Training texts of models and of the models they come from: starts, teachers, labellers."""

import os
from dataclasses import dataclass
from functools import reduce
from operator import or_
from pathlib import Path
from typing import Any, Self

from ..downloads import download_options
from .training_texts import TrainingTexts, short_name


@dataclass(frozen=True)
class Lineage:
    """
    Training texts and ancestors of a model, kept with it and its copies; read and written by the functions here.

    Args:
        trained_on ([`TrainingTexts`], *optional*): Texts of the model itself and of all that it comes from.
        inherited ([`TrainingTexts`], *optional*): Texts of the models that it was made of, before it is trained.
    """

    trained_on: TrainingTexts | None = None
    inherited: TrainingTexts | None = None

    @classmethod
    def of(cls, model: Any) -> Self:
        """The lineage noted in a model, or in the folder or Hub repository that it was loaded from."""
        noted, name = getattr(model, "lineage", cls()), getattr(model, "name_or_path", None)
        if noted == cls() and name:
            return cls(TrainingTexts.load(name, **download_options(model)))
        return noted


def training_texts_of(model: Any) -> TrainingTexts | None:
    """Return what a model was trained on, itself and all that it comes from; `None` if that is not known."""
    return Lineage.of(model).trained_on


def ancestry_of(model: Any) -> TrainingTexts:
    """Training texts of a model that another is made of; one loaded without a record is named as not known."""
    lineage, name = Lineage.of(model), getattr(model, "name_or_path", None)
    for known in (lineage.trained_on, lineage.inherited):
        if known is not None:
            return known
    return TrainingTexts(unknown=(short_name(name),) if name else ())


def note_training_texts(model: Any, texts: TrainingTexts) -> None:
    """Record in a model what it was trained on, itself and all that it comes from."""
    model.lineage = Lineage(trained_on=texts)


def inherit_training_texts(model: Any, *sources: Any) -> None:
    """Record that weights of `sources` went into `model`: its trainer adds what they were trained on."""
    united = reduce(or_, (ancestry_of(each) for each in (model, *sources)))
    trained = getattr(model, "lineage", Lineage()).trained_on is not None
    model.lineage = Lineage(trained_on=united) if trained else Lineage(inherited=united)


def write_training_texts(model: Any, folder: str | os.PathLike) -> None:
    """Write [`training_texts_of`] a model to the folder where it is saved. If they are not known, a file that is
    there goes: it belongs to a model of before."""
    texts = training_texts_of(model)
    if texts is not None:
        texts.save(folder)
    else:
        (Path(folder) / TrainingTexts.file_name).unlink(missing_ok=True)


def texts_of_rows(dataset: Any) -> TrainingTexts:
    """
    Return digests of the rows of [`load_mwp_dataset`] on which a solver is trained. Where they were loaded with
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
    """Return what is known of the model that labelled the problems of a file."""
    path = Path(source)
    if not path.exists():
        return TrainingTexts()
    known = TrainingTexts.load(path.parent if path.is_file() else path)
    if known is None:
        return TrainingTexts(unknown=(f"labeller of {short_name(source)}",) if path.name == "labelled.jsonl" else ())
    return known
