"""Records of the training texts of a model and of its ancestors (initial model, teacher, labeller)."""

from collections.abc import Callable
from os import PathLike
from pathlib import Path
from typing import Any, ClassVar, Protocol, Self

from .downloads import download_options


class TrainingRecord(Protocol):
    """Record of the texts that a model and its ancestors were trained on. Without arguments, it is empty."""

    file_name: ClassVar[str]  # name of its file in the folder of a model

    @classmethod
    def from_rows(cls, dataset: Any) -> Self:
        """Create the record of training rows."""

    @classmethod
    def of_unknown(cls, name: str) -> Self:
        """Create the record of a model whose training texts are unknown."""

    @classmethod
    def load(cls, name_or_path: str | PathLike, **kwargs) -> Self | None:
        """Read the record in the folder or Hub repository of a model, or return `None` if there is none."""

    def save(self, folder: str | PathLike) -> None:
        """Write the record to the folder of a model."""

    def includes(self, other: Self) -> bool:
        """Return whether all training texts of another record are also in this one."""

    def __or__(self, other: Self) -> Self:
        """Return the union of two records."""


# Function that imports the class of the records, `TrainingTexts`, on first use. `hf_mwp/__init__.py` sets it.
load_record_class: Callable[[], type[TrainingRecord]] | None = None


def record_class() -> type[TrainingRecord]:
    """Return the class of the records."""
    return load_record_class()


def training_texts_of(model: Any) -> Any:
    """Return the record of the training texts of a model and its ancestors, from its attribute `training_texts` or
    from the folder or Hub repository it was loaded from. Returns `None` if they are unknown, or the model is not
    trained yet."""
    texts = getattr(model, "training_texts", None)
    name = getattr(model, "name_or_path", None)
    if texts is None and name and not hasattr(model, "inherited_texts"):
        return record_class().load(name, **download_options(model))
    return texts


def ancestry_of(model: Any) -> Any:
    """Return the record of the training texts that a model passes on. If they are unknown, `unknown` contains the
    model's name."""
    texts = training_texts_of(model)
    if texts is None:
        texts = getattr(model, "inherited_texts", None)
    if texts is not None:
        return texts
    name = getattr(model, "name_or_path", None)
    return record_class().of_unknown(name) if name else record_class()()


def inherit_training_texts(model: Any, *sources: Any) -> None:
    """Add the training texts of `sources`, from which `model` was made, to those of `model`. For a model that is not
    trained yet, they are kept in its attribute `inherited_texts`."""
    texts = ancestry_of(model)
    for source in sources:
        texts |= ancestry_of(source)
    is_trained = getattr(model, "training_texts", None) is not None
    setattr(model, "training_texts" if is_trained else "inherited_texts", texts)


def write_training_texts(model: Any, folder: str | PathLike) -> None:
    """Write the record of the training texts of a model to its folder. If they are unknown, remove the file of a
    former model."""
    texts = training_texts_of(model)
    if texts is not None:
        texts.save(folder)
    else:
        (Path(folder) / record_class().file_name).unlink(missing_ok=True)
