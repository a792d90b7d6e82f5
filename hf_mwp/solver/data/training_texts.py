"""Digests of the training texts of a model."""

import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import reduce
from hashlib import blake2b
from operator import or_
from os import PathLike
from pathlib import Path
from typing import Any, Self

import numpy as np

from hf_mwp.runtime.problems.text_keys import VERSION, TextKeys
from hf_mwp.utils.checked_types import checked
from hf_mwp.utils.downloads import find_beside
from hf_mwp.utils.files import replacing
from hf_mwp.utils.run_folder import TEXTS

from .data_error import DataError
from .load_report import dataset_report


NOTHING = np.empty(0, dtype=np.uint32)


@checked
@dataclass(frozen=True, eq=False)
class TrainingTexts:
    """Digests of the training texts of a model and its ancestors (initial model, teacher, labeller). They identify a
    training text, also with different numbers, but do not reveal it. They are saved with the model in
    `training_texts.safetensors`, with at most 8 bytes per text. `exact` and `masked` are the sorted distinct digests
    of the exact keys and of the keys with masked numbers ([`~problems.text_keys.TextKeys`]); `sources` names datasets
    with split and fold, or files; `unknown` names the ancestors whose training texts are unknown.

    The digests have 32 bits. A new text is mistaken for one of `n` training texts with a probability of `n / 2**32`, 1
    in 50,000 for 84,000 texts. A training text is always recognised.
    """

    exact: np.ndarray = field(default_factory=NOTHING.copy)
    masked: np.ndarray = field(default_factory=NOTHING.copy)
    sources: tuple[str, ...] = ()
    unknown: tuple[str, ...] = ()

    file_name = TEXTS

    @classmethod
    def from_texts(cls, texts: Iterable[str], sources: Iterable[str] = ()) -> Self:
        """Create the digests of texts. `sources` contains the names of their datasets or files."""
        exact = set()
        masked = set()
        for text in texts:
            keys = TextKeys.of(text)
            if keys.exact:
                exact.add(digest(keys.exact))
                masked.add(digest(keys.masked))
        return cls(
            np.array(sorted(exact), dtype=np.uint32),
            np.array(sorted(masked), dtype=np.uint32),
            tuple(dict.fromkeys(sources)),
        )

    @classmethod
    def from_rows(cls, dataset: Any) -> Self:
        """Create the digests of the rows on which a solver is trained. For pseudo-labelled rows (in `extra_train` of
        [`load_mwp_dataset`]), the training texts of the labeller are added."""
        if isinstance(dataset, list):
            texts = [row.get("text") for row in dataset]
        else:
            # Without a transform (`set_transform`), whose rows may have no texts.
            dataset = dataset.with_format(None)
            texts = dataset["text"] if "text" in dataset.column_names else ()
        # Other columns of this name, such as lists of words, are no texts.
        texts = [text for text in texts if isinstance(text, str)]
        if not texts:
            return cls(unknown=("rows without texts",))
        try:
            report = dataset_report(dataset)
        except DataError:
            sources = set()
            for row in dataset:
                names = [str(row[column]) for column in ("dataset", "file") if row.get(column)]
                sources.add(", ".join(names) or "rows")
            return cls.from_texts(texts, sorted(sources))
        sources = [f"{report.dataset} ({report.scheme}), train", *map(short_name, report.extra)]
        return reduce(or_, map(cls.of_labeller, report.extra), cls.from_texts(texts, sources))

    @classmethod
    def of_labeller(cls, source: str | PathLike) -> Self:
        """Read the training texts of the model that labelled the problems in a file or folder."""
        path = Path(source)
        if not path.exists():
            return cls()
        texts = cls.load(path.parent if path.is_file() else path)
        if texts is not None:
            return texts
        return cls(unknown=(f"labeller of {short_name(source)}",)) if path.name == "labelled.jsonl" else cls()

    @classmethod
    def of_unknown(cls, name: str) -> Self:
        """Create the record of a model whose training texts are unknown."""
        return cls(unknown=(short_name(name),))

    @property
    def complete(self) -> bool:
        """True if the training texts of all ancestors are known."""
        return not self.unknown

    def __len__(self) -> int:
        return len(self.exact)

    def __or__(self, other: Self) -> Self:
        return TrainingTexts(
            np.union1d(self.exact, other.exact),
            np.union1d(self.masked, other.masked),
            tuple(dict.fromkeys((*self.sources, *other.sources))),
            tuple(dict.fromkeys((*self.unknown, *other.unknown))),
        )

    def includes(self, other: Self) -> bool:
        """Return whether all training texts of `other` are also in this record."""
        return bool(np.isin(other.exact, self.exact).all())

    def seen(self, text: str) -> tuple[bool, bool]:
        """Return whether `text` is a training text, and whether it is a training text if numbers are ignored. Spaces,
        punctuation and the form of numerals are always ignored."""
        exact, masked = TextKeys.of(text)
        return exact != "" and digest(exact) in self.exact, masked != "" and digest(masked) in self.masked

    def to_dict(self) -> dict[str, Any]:
        """Return the sizes, the sources and the ancestors with unknown training texts, for the record of a run."""
        return {
            "rule": VERSION,
            "texts": len(self.exact),
            "masked_texts": len(self.masked),
            "sources": list(self.sources),
            "not_known": list(self.unknown),
        }

    def save(self, folder: str | PathLike) -> None:
        """Write `training_texts.safetensors` to a folder. The folder is created if it does not exist."""
        from safetensors.numpy import save

        metadata = {name: json.dumps(value, ensure_ascii=False) for name, value in self.to_dict().items()}
        metadata["digests"] = "first 32 bits, little endian, of the blake2b (4 bytes) of a text's key in UTF-8"
        metadata["false_matches"] = f"{len(self.exact) / 2**32:.1e} of texts that were not trained on"
        with replacing(Path(folder) / self.file_name) as unfinished:
            unfinished.write_bytes(save({"exact": self.exact, "masked": self.masked}, metadata=metadata))

    @classmethod
    def load(cls, name_or_path: str | PathLike, **kwargs) -> Self | None:
        """Read the file in the folder or Hub repository of a model, or return `None` if there is no file. `kwargs`
        (`revision`, `token`, ...) are passed to the download. Raises `DataError` if the file is damaged, or was made
        with a different version of [`~problems.text_keys.TextKeys`]."""
        from safetensors import SafetensorError, safe_open

        path = find_beside(name_or_path, cls.file_name, **kwargs)
        if path is None:
            return None
        remedy = "Train the model again, or write the file with `TrainingTexts.from_texts(...).save(folder)`"
        try:
            with safe_open(path, framework="numpy") as file:
                record = {name: json.loads(file.metadata()[name]) for name in ("rule", "sources", "not_known")}
                exact = file.get_tensor("exact")
                masked = file.get_tensor("masked")
        except (SafetensorError, ValueError, KeyError, TypeError) as error:
            raise DataError(f"the digests of training texts cannot be read ({error}). {remedy}", path) from error
        if record["rule"] != VERSION:
            raise DataError(f"the digests have version {record['rule']}, expected {VERSION}. {remedy}", path)
        return cls(exact, masked, tuple(record["sources"]), tuple(record["not_known"]))


def digest(key: str) -> int:
    """Return a 32-bit hash of a key."""
    return int.from_bytes(blake2b(key.encode("utf-8", "surrogatepass"), digest_size=4).digest(), "little")


def short_name(name: str) -> str:
    """Return the last two parts of a path, since folders of models often have the same name."""
    return "/".join(Path(name).parts[-2:])
