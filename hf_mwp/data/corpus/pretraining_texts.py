"""Texts of problems without their equations, for pretraining."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from hashlib import blake2b
from itertools import chain
from pathlib import Path

from ...problems import MathWordProblem
from ...problems.control_characters import without_controls
from ...problems.math_word_problem import MAX_TEXT_LENGTH, TOO_LONG
from ...problems.text_keys import TextKeys
from ..data_error import DataError
from ..datasets.file_loader import language_of, text_fields
from ..datasets.sources import LOADERS, SPLITS, part_of, read_splits, split_name
from ..reading.file_contents import RECORD_FILES, RECORD_SUFFIXES, read_entries, read_lines
from ..reading.schema import Record


HELD_OUT = ("validation", "test")
_TEXT_FILES = (".txt", ".txt.gz")
_SURROGATE = re.compile("[\ud800-\udfff]")


def read_texts(
    paths_or_names: Iterable[str | Path] | str | Path,
    exclude: Iterable[str | Path] | str | Path = (),
    language: str | None = None,
    data_dir: str | Path | None = None,
    counts: Counter | None = None,
) -> Iterator[str]:
    """
    Read the texts of files and data sets, each once.

    Two texts are the same if nothing but their numbers and white space differs, as models see numbers masked
    (`MathWordProblem.masked_key`). Excluded texts are compared more loosely, also without punctuation and case and
    with numerals as numbers ([`~problems.text_keys.TextKeys`]). Files are read as they are needed; of each text a hash
    stays in memory.

    Args:
        paths_or_names (`list[str]`): Sources, or a single one: a `.txt` file with a problem a line; a `.jsonl`,
            `.json` or `.csv` file with a `text` (or another name of it, see
            `hf_mwp.data.datasets.file_loader.ALIASES`); each also with `.gz`; the name of a data set of
            [`load_mwp_dataset`], whose training split is read, or a name and a part: `"ape210k:validation"`,
            `"cm17k:all"`.
        exclude (`list[str]`, *optional*): Sources whose texts must not occur. A data set named
            without a split stands for its validation and test splits.
        language (`str`, *optional*): `"zh"` or `"en"`, which says what words are numbers; by default a text with
            Chinese characters is Chinese.
        data_dir (`str`, *optional*): Folder of the data sets, as in [`load_mwp_dataset`].
        counts (`collections.Counter`, *optional*): Counts `"read"`, `"kept"`, `"duplicate"` and `"excluded"` texts.

    Returns:
        `Iterator[str]`: the texts without control characters and white space around them; blank ones are passed over.

    Raises:
        DataError: at once for a source that there is not; for a damaged one when it is reached, with file and line.
    """
    sources = _open(paths_or_names, ("train",), data_dir)
    held_out = held_out_texts(exclude, data_dir)
    if not sources:
        raise DataError("there is nothing to read texts from: name files or data sets")
    return _read(chain.from_iterable(sources), held_out, language, Counter() if counts is None else counts)


def held_out_texts(exclude: Iterable[str | Path] | str | Path, data_dir: str | Path | None = None) -> Iterator[str]:
    """Return the texts that [`read_texts`] excludes; arguments and errors as there."""
    return chain.from_iterable(_open(exclude, HELD_OUT, data_dir))


def _read(texts: Iterator[str], held_out: Iterator[str], language: str | None, counts: Counter) -> Iterator[str]:
    excluded = set(map(loose_digest, held_out))
    seen: set[bytes] = set()
    for text in texts:
        key = masked_digest(text, language)
        held_out_too = bool(excluded) and loose_digest(text) in excluded
        kind = "excluded" if held_out_too else "duplicate" if key in seen else "kept"
        counts.update(("read", kind))
        if kind == "kept":
            seen.add(key)
            yield text


def _open(
    sources: Iterable[str | Path] | str | Path, parts: Sequence[str], data_dir: str | Path | None
) -> list[Iterator[str]]:
    """Check sources at once and return the texts of each, read when they are needed."""
    opened = []
    for source in [sources] if isinstance(sources, str | Path) else sources:
        name, part = split_name(source)
        if name in LOADERS:
            opened.append(_clean(_rows(name, SPLITS if part == "all" else (part,) if part else parts, data_dir)))
        elif not Path(source).is_file():
            raise DataError(
                f"there is no such file, nor is it one of the data sets {', '.join(LOADERS)}, or one of these and a "
                "part, such as ape210k:validation",
                source,
            )
        elif not Path(source).name.endswith(_TEXT_FILES + RECORD_FILES):
            endings = ", ".join(_TEXT_FILES[:1] + RECORD_SUFFIXES)
            raise DataError(f"the name of a file with texts ends in {endings}, or in one of these and .gz", source)
        else:
            opened.append(_clean(_lines(Path(source))))
    return opened


def _clean(texts: Iterator[tuple[str, Path | str, int]]) -> Iterator[str]:
    for text, file, line in texts:
        if _SURROGATE.search(text):
            raise DataError("the text is not UTF-8: convert the file", file, line)
        if len(text) > MAX_TEXT_LENGTH:
            raise DataError(TOO_LONG, file, line)
        if text := without_controls(text).strip():
            yield text


def _rows(name: str, parts: Sequence[str], data_dir: str | Path | None) -> Iterator[tuple[str, str, int]]:
    for row in part_of(read_splits(name, data_dir)[0], name, parts):
        yield row["text"], row["file"], row["line"]


def _lines(path: Path) -> Iterator[tuple[str, Path, int]]:
    if path.name.endswith(_TEXT_FILES):
        yield from ((text, path, line) for line, text in enumerate(read_lines(path), 1))
        return
    for line, entry in read_entries(path):
        if isinstance(entry, DataError):
            raise entry
        record = Record(entry, str(path), line)
        yield " ".join(map(record.text, text_fields(record))), path, line


def masked_digest(text: str, language: str | None = None) -> bytes:
    """Hash a text, equally for texts that differ only in their numbers and white space."""
    key = MathWordProblem(text, language=language or language_of(text)).masked_key
    return blake2b(key.encode(), digest_size=8).digest()


def loose_digest(text: str) -> bytes:
    """Hash a text's masked [`~problems.text_keys.TextKeys`], by which texts are excluded from training."""
    return blake2b(TextKeys.of(text).masked.encode("utf-8", "surrogatepass"), digest_size=8).digest()
