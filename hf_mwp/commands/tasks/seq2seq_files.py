"""Loader of pairs of source and target texts from files or the Hub."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from hf_mwp.solver.data.data_error import DataError
from hf_mwp.solver.data.file_contents import read_lines, read_records
from hf_mwp.solver.data.file_loader import SPLIT_FILES, check_single, split_of_file
from hf_mwp.solver.data.schema import Record, Rows
from hf_mwp.solver.data.splits import hold_out
from hf_mwp.utils.downloads import missing_folder


if TYPE_CHECKING:
    from datasets import DatasetDict

SUFFIXES = (".jsonl", ".json", ".csv", ".tsv")


def load_seq2seq(
    dataset: str | Path, source: str, target: str | None, validation_fraction: float = 0.1
) -> DatasetDict:
    """Load pairs of texts as rows with the columns `id` (file and line), `text` (source), `target` and `dataset`.

    `dataset` is a file (`.jsonl`, `.json`, `.csv` with a header, or `.tsv`, optionally gzipped); a folder with
    `train`, `validation` (or `valid`, `val`, `dev`) and `test` files, which may be parallel files (`train.en` and
    `train.fr`); or a dataset from the Hub, `id` or `id:configuration`. The beginning of a file name determines the
    split, by default the training split. Without a validation split, the share `validation_fraction` of the training
    split is held out.

    `source` and `target` are fields of the texts (also inside a field `translation`), columns `"1"`, `"2"`, ... of a
    TSV file without a header, or endings of parallel files. Without `target`, only source texts are read. Raises
    `DataError` if the dataset does not exist, or a text of a row is missing (with file, line and field).
    """
    from datasets import Dataset, DatasetDict

    path, names = Path(dataset), [name for name in (source, target) if name is not None]
    if path.is_file():
        splits = {split_of_file(path): _read_file(path, names)}
    elif path.is_dir():
        splits = _read_folder(path, names)
    else:
        splits = _read_hub(str(dataset), names)
    if "validation" not in splits and "train" in splits and validation_fraction:
        splits["train"], splits["validation"] = hold_out(splits["train"], validation_fraction)
    named = {"dataset": path.stem if path.exists() else str(dataset)}
    order = [split for split in SPLIT_FILES if split in splits]
    return DatasetDict({split: Dataset.from_list([row | named for row in splits[split]]) for split in order})


def locate_pairs(dataset: str) -> Path | None:
    """Return the file or folder of a dataset, or `None` for the Hub. Raises `DataError` if a path does not exist."""
    path = Path(dataset)
    if not path.exists() and (_kind(path) or missing_folder(dataset)):
        raise DataError("no such file or folder", path)
    return path if path.exists() else None


def _kind(path: Path) -> str | None:
    """Return the supported file extension of a path, or `None`."""
    return next((suffix for suffix in SUFFIXES if path.name.removesuffix(".gz").endswith(suffix)), None)


def _read_folder(folder: Path, names: Sequence[str]) -> dict[str, Rows]:
    files, splits = sorted(path for path in folder.iterdir() if path.is_file()), {}
    for split, stems in SPLIT_FILES.items():
        found = [path for path in files if path.name.startswith(stems)]
        found = [path for path in found if _kind(path) or path.suffix == f".{names[0]}"]
        # Prefer `test.tsv` to `test_2016_flickr.tsv`.
        found = [path for path in found if path.name.partition(".")[0] in stems] or found
        check_single(split, [path.name for path in found], folder)
        if found:
            splits[split] = (_read_file if _kind(found[0]) else _read_parallel)(found[0], names)
    if not splits:
        endings = f"{', '.join(SUFFIXES)} or .{names[0]}"
        raise DataError(f"there is no train, validation or test file that ends in {endings}", folder)
    return splits


def _read_parallel(first: Path, names: Sequence[str]) -> Rows:
    paths = [first, *(first.with_suffix(f".{name}") for name in names[1:])]
    if not paths[-1].is_file():
        raise DataError(f"this file is missing next to {first.name}", paths[-1])
    texts = [[line.rstrip("\r\n") for line in read_lines(path)] for path in paths]
    if len(texts[0]) != len(texts[-1]):
        line, longer = min(map(len, texts)) + 1, paths[len(texts[-1]) > len(texts[0])]
        raise DataError("the other file of the pair has fewer lines", longer, line)
    place = first.with_suffix(".*")
    rows = (dict(zip(names, pair, strict=True)) for pair in zip(*texts, strict=True))
    return _rows((Record(row, str(place), line) for line, row in enumerate(rows, 1)), names, place)


def _read_file(path: Path, names: Sequence[str]) -> Rows:
    if _kind(path) is None:
        raise DataError(f"a file of pairs must end in {', '.join(SUFFIXES)}", path)
    return _rows(read_records(path, _tsv_header(path, names) if _kind(path) == ".tsv" else ()), names, path)


def _tsv_header(path: Path, names: Sequence[str]) -> list[str]:
    """Return the columns `"1"`, `"2"`, ... if a file has no header, else an empty list."""
    cells = next(read_lines(path), "").rstrip("\r\n").split("\t")
    if {*names} <= {*cells}:
        return []
    header = [str(place) for place in range(1, len(cells) + 1)]
    if unknown := [name for name in names if name not in header]:
        fault = f"unknown column. The first line has {', '.join(cells)[:80]!r}. If it is not a header, choose from the"
        raise DataError(f"{fault} columns {', '.join(header)}", path, 1, unknown[0])
    return header


def _rows(records: Iterable[Record], names: Sequence[str], place: Path) -> Rows:
    rows = []
    for record in records:
        nested = record.fields.get("translation")
        if isinstance(nested, Mapping):
            record = replace(record, fields=nested)
        texts = [record.text(name).strip() for name in names]
        if "" in texts:
            record.fail("the text is empty", names[texts.index("")])
        name = Path(record.file).name.partition(".")[0]
        rows.append({"id": f"{name}-{record.line}", **dict(zip(("text", "target"), texts, strict=False))})
    if not rows:
        raise DataError("the dataset has no rows", place)
    return rows


def _read_hub(name: str, names: Sequence[str]) -> dict[str, Rows]:
    from datasets import load_dataset

    locate_pairs(name)
    identifier, _, configuration = name.partition(":")
    try:
        loaded = load_dataset(identifier, *([configuration] if configuration else []))
    except (OSError, ValueError) as error:
        fault = f"not a file or folder, and the Hub cannot be reached or does not have this dataset ({error})"
        raise DataError(fault, name) from error
    places = {split: Path(f"{name}/{split}") for split in loaded if split in SPLIT_FILES}
    return {
        split: _rows((Record(row, str(place), line) for line, row in enumerate(loaded[split])), names, place)
        for split, place in places.items()
    }
