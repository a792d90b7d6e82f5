"""Digests of the texts that a model was trained on."""

import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from hashlib import blake2b
from os import PathLike
from pathlib import Path
from typing import Any, Self

import numpy as np

from ..downloads import find_beside
from ..problems.text_keys import VERSION, TextKeys
from ..store.runs.run_folder import TEXTS
from .data_error import DataError


NOTHING = np.empty(0, dtype=np.uint32)


@dataclass(frozen=True, eq=False)
class TrainingTexts:
    """
    Digests of a model's training texts, by which a text is recognised, also with other numbers, but not recovered.
    They are saved with the model as `training_texts.safetensors`, at most 8 bytes a text.

    Digests of [`~problems.text_keys.TextKeys`] have 32 bits, so an unseen text is taken for one of `n` training texts
    with a chance of `n / 2**32`: 1 in 50,000 for 84,000 texts. A training text is always recognised.

    Args:
        exact (`np.ndarray` of `uint32`), masked (`np.ndarray` of `uint32`): Sorted distinct digests of both keys.
        sources (`tuple[str, ...]`): Sources of the texts: data sets with split and fold, names of files.
        unknown (`tuple[str, ...]`): Ancestors of the model (start, teacher, labeller) with unknown training texts.

    Example:

    ```python
    >>> texts = TrainingTexts.from_texts(load_mwp_dataset("math23k")["train"]["text"], ["math23k, train"])
    >>> texts.save("my-solver")  # beside weights that were trained on these
    >>> TrainingTexts.load("my-solver").seen("小明有五个苹果，吃了2个，还剩几个？")
    (False, True)
    ```
    """

    exact: np.ndarray = field(default_factory=NOTHING.copy)
    masked: np.ndarray = field(default_factory=NOTHING.copy)
    sources: tuple[str, ...] = ()
    unknown: tuple[str, ...] = ()

    file_name = TEXTS

    @classmethod
    def from_texts(cls, texts: Iterable[str], sources: Iterable[str] = ()) -> Self:
        """Make the digests of texts; `sources` names their origin."""
        keys = {keys for keys in map(TextKeys.of, texts) if keys.exact}
        columns = (sorted({digest(key) for key in column}) for column in zip(*keys, strict=True))
        exact, masked = (np.array(column, dtype=np.uint32) for column in columns) if keys else (NOTHING, NOTHING)
        return cls(exact, masked, tuple(dict.fromkeys(sources)))

    @property
    def complete(self) -> bool:
        """Return whether the training texts of all ancestors are known."""
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

    def seen(self, text: str) -> tuple[bool, bool]:
        """Return whether `text` was trained on, ignoring spaces, punctuation and the form of numerals; and whether it
        was with any numbers."""
        exact, masked = TextKeys.of(text)
        return exact != "" and _has(self.exact, digest(exact)), masked != "" and _has(self.masked, digest(masked))

    def to_dict(self) -> dict[str, Any]:
        """Return the fields of a run's record."""
        return {
            "rule": VERSION,
            "texts": len(self.exact),
            "masked_texts": len(self.masked),
            "sources": list(self.sources),
            "not_known": list(self.unknown),
        }

    def save(self, folder: str | PathLike) -> None:
        """Write `training_texts.safetensors` to a folder, which is created if it does not exist."""
        from safetensors.numpy import save

        metadata = {name: json.dumps(value, ensure_ascii=False) for name, value in self.to_dict().items()}
        metadata["digests"] = "first 32 bits, little endian, of the blake2b (4 bytes) of a text's key in UTF-8"
        metadata["false_matches"] = f"{len(self.exact) / 2**32:.1e} of texts that were not trained on"
        path = Path(folder) / self.file_name
        path.parent.mkdir(parents=True, exist_ok=True)
        unfinished = path.with_name(path.name + ".part")
        unfinished.write_bytes(save({"exact": self.exact, "masked": self.masked}, metadata=metadata))
        unfinished.replace(path)

    @classmethod
    def load(cls, name_or_path: str | PathLike, **kwargs) -> Self | None:
        """
        Read the file in a model's folder or Hub repository, `None` if there is none; `kwargs` (`revision`, `token`,
        ...) go to the download.

        Raises:
            DataError: the file is damaged, or made by another version of [`~problems.text_keys.TextKeys`].
        """
        from safetensors import SafetensorError, safe_open

        path = find_beside(name_or_path, cls.file_name, **kwargs)
        if path is None:
            return None
        remedy = "train the model again, or write the file with `TrainingTexts.from_texts(...).save(folder)`"
        try:
            with safe_open(path, framework="numpy") as file:
                record = {name: json.loads(file.metadata()[name]) for name in ("rule", "sources", "not_known")}
                exact, masked = file.get_tensor("exact"), file.get_tensor("masked")
        except (SafetensorError, ValueError, KeyError, TypeError) as error:
            raise DataError(f"no digests of training texts can be read ({error}): {remedy}", path) from error
        if record["rule"] != VERSION:
            raise DataError(f"its texts were compared by rule {record['rule']}, not {VERSION}: {remedy}", path)
        return cls(exact, masked, tuple(record["sources"]), tuple(record["not_known"]))


def digest(key: str) -> int:
    """32 bits of a key."""
    return int.from_bytes(blake2b(key.encode("utf-8", "surrogatepass"), digest_size=4).digest(), "little")


def _has(digests: np.ndarray, value: int) -> bool:
    place = int(np.searchsorted(digests, np.uint32(value)))
    return place < len(digests) and int(digests[place]) == value


def short_name(name: str) -> str:
    """Shorten a local path to its last two parts, since folders of models often have the same name."""
    return "/".join(Path(name).parts[-2:])
