"""Pairs of source and target texts, from files or the Hub."""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..data_error import DataError
from ..reading.file_contents import read_entries, read_lines


if TYPE_CHECKING:
    from datasets import DatasetDict

SPLITS = {"train": ("train",), "validation": ("validation", "valid", "val", "dev"), "test": ("test",)}
SUFFIXES = (".jsonl", ".json", ".csv", ".tsv")
Rows = list[dict[str, str]]


def load_seq2seq(
    dataset: str | Path, source: str, target: str | None, validation_fraction: float = 0.1, seed: int = 0
) -> DatasetDict:
    """
    Load pairs of source and target texts.

    Args:
        dataset (`str` or `Path`):
            A file (`.jsonl`, `.json`, `.csv` with a header, `.tsv`, each also with `.gz`), which is the split that its
            name begins with, or else the training split; a folder with `train`, `validation` (or `valid`, `val`,
            `dev`) and `test` files of these kinds, or with parallel files, `train.en` and `train.fr`; or a data set of
            the Hub, `id` or `id:configuration`.
        source (`str`), target (`str`, *optional*):
            Fields of the texts, or of the languages in a field `translation`; endings of parallel files. Columns of a
            TSV file without a header are `"1"`, `"2"`, ... Without a target, rows have source texts alone.
        validation_fraction (`float`, *optional*, defaults to 0.1): Share of the training split that is held out if
            there is no validation split; at 0 none.
        seed (`int`, *optional*, defaults to 0): Seed of the choice.

    Returns:
        `DatasetDict`: rows have `id` (file and line), `text` (the source), `target` and `dataset`.

    Raises:
        DataError: there are no such data, or a row lacks a text; it names file, line and field.
    """
    from datasets import Dataset, DatasetDict

    path = Path(dataset)
    if path.is_file():
        starts = (split for split, stems in SPLITS.items() if path.name.startswith(stems))
        splits = {next(starts, "train"): _read_file(path, source, target)}
    elif path.is_dir():
        splits = _read_folder(path, source, target)
    else:
        splits = _read_hub(str(dataset), source, target)
    if "validation" not in splits and "train" in splits and validation_fraction:
        train = splits["train"]
        held_out = {*random.Random(seed).sample(range(len(train)), round(validation_fraction * len(train)))}
        splits["train"] = [row for index, row in enumerate(train) if index not in held_out]
        splits["validation"] = [train[index] for index in sorted(held_out)]
    named = {"dataset": path.stem if path.exists() else str(dataset)}
    order = [split for split in SPLITS if split in splits]
    return DatasetDict({split: Dataset.from_list([row | named for row in splits[split]]) for split in order})


def locate_pairs(dataset: str) -> Path | None:
    """Return the file or folder of a data set, `None` for one of the Hub; `DataError` for a missing path."""
    path = Path(dataset)
    if not path.exists() and (_kind(path) or dataset.startswith((".", "/", "~"))):
        raise DataError("there is no such file or folder", path)
    return path if path.exists() else None


def _kind(path: Path) -> str | None:
    """Return the file extension that decides how a file is read, or `None` for others."""
    return next((suffix for suffix in SUFFIXES if path.name.removesuffix(".gz").endswith(suffix)), None)


def _read_folder(folder: Path, source: str, target: str | None) -> dict[str, Rows]:
    files, splits = sorted(path for path in folder.iterdir() if path.is_file()), {}
    for split, stems in SPLITS.items():
        # The exact name counts before one that goes on, such as test_2016_flickr.tsv.
        named = [path for path in files if path.name.startswith(stems)]
        found = [path for path in named if _kind(path) or path.suffix == f".{source}"]
        found = [path for path in found if path.name.partition(".")[0] in stems] or found
        if len(found) > 1:
            names = ", ".join(path.name for path in found)
            raise DataError(f"several files may be the {split} split ({names}): name one of them alone", folder)
        if found and _kind(found[0]):
            splits[split] = _read_file(found[0], source, target)
        elif found:
            splits[split] = _read_parallel(found[0], source, target)
    if not splits:
        raise DataError(
            f"there is no train, validation or test file that ends in {', '.join(SUFFIXES)} or .{source}", folder
        )
    return splits


def _read_parallel(first: Path, source: str, target: str | None) -> Rows:
    second = first if target is None else first.with_suffix(f".{target}")
    if not second.is_file():
        raise DataError(f"there is no such file beside {first.name}", second)
    texts = [[line.rstrip("\r\n") for line in read_lines(path)] for path in (first, second)]
    if len(texts[0]) != len(texts[1]):
        line, longer = min(map(len, texts)) + 1, (first, second)[len(texts[1]) > len(texts[0])]
        raise DataError("the other file of the pair has no such line", longer, line)
    entries = [{target: theirs, source: ours} for ours, theirs in zip(*texts, strict=True)]
    return _rows(first.with_suffix(".*"), source, target, enumerate(entries, 1))


def _read_file(path: Path, source: str, target: str | None) -> Rows:
    if _kind(path) is None:
        raise DataError(f"a file of pairs ends in {', '.join(SUFFIXES)}", path)
    entries = _tsv_entries(path, source, target) if _kind(path) == ".tsv" else read_entries(path)
    return _rows(path, source, target, entries)


def _tsv_entries(path: Path, source: str, target: str | None) -> Iterator[tuple[int, Mapping[str, str]]]:
    header: list[str] | None = None
    for number, line in enumerate(read_lines(path), 1):
        cells = line.rstrip("\r\n").split("\t")
        if header is None:
            if {source, target} - {None} <= {*cells}:
                header = cells
                continue
            header = [str(place + 1) for place in range(len(cells))]
            for name in filter(None, (source, target)):
                if name not in header:
                    columns = ", ".join(header)
                    raise DataError(
                        f"the first line has no such column, but {', '.join(cells)[:80]!r}; without a header, columns "
                        f"are {columns}",
                        path,
                        1,
                        name,
                    )
        if len(cells) != len(header):
            raise DataError(f"there are {len(cells)} columns, the first line has {len(header)}", path, number)
        yield number, dict(zip(header, cells, strict=True))


def _rows(path: Path, source: str, target: str | None, entries: Iterable[tuple[int, Any]]) -> Rows:
    rows = []
    for line, entry in entries:
        if isinstance(entry, DataError):
            raise entry
        fields = entry["translation"] if isinstance(entry.get("translation"), Mapping) else entry
        for name in filter(None, (source, target)):
            text = fields.get(name)
            if not isinstance(text, str) or not text.strip():
                found = f"there is no such field, but {', '.join(map(str, fields))}" if name not in fields else None
                raise DataError(found or f"expected a text, not {str(text)[:40]!r}", path, line, name)
        stem = path.name.partition(".")[0]
        texts = {"text": source} if target is None else {"text": source, "target": target}
        rows.append({"id": f"{stem}-{line}"} | {key: fields[name].strip() for key, name in texts.items()})
    if not rows:
        raise DataError("there are no rows", path)
    return rows


def _read_hub(name: str, source: str, target: str | None) -> dict[str, Rows]:
    from datasets import load_dataset

    locate_pairs(name)
    identifier, _, configuration = name.partition(":")
    try:
        loaded = load_dataset(identifier, *([configuration] if configuration else []))
    except (OSError, ValueError) as error:
        raise DataError(
            f"there is no such file or folder, and the Hub cannot be reached or has no such data ({error})", name
        ) from error
    found = {split: _rows(Path(f"{name}/{split}"), source, target, enumerate(loaded[split])) for split in loaded}
    return {split: rows for split, rows in found.items() if split in SPLITS}
