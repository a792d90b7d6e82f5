"""Loader of pairs of source and target texts from files or the Hub."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from hf_mwp.solver.data.data_error import DataError
from hf_mwp.solver.data.file_contents import read_lines, read_records
from hf_mwp.solver.data.mwp_loader import SPLIT_FILES, check_single, split_of_file
from hf_mwp.solver.data.record import Record, Rows
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

    path = Path(dataset)
    names = [source] if target is None else [source, target]
    if path.is_file():
        splits = {split_of_file(path): _read_file(path, names)}
    elif path.is_dir():
        splits = _read_folder(path, names)
    else:
        splits = _read_hub(str(dataset), names)
    if "validation" not in splits and "train" in splits and validation_fraction:
        splits["train"], splits["validation"] = hold_out(splits["train"], validation_fraction)
    name = path.stem if path.exists() else str(dataset)
    datasets = DatasetDict()
    for split in SPLIT_FILES:
        if split in splits:
            datasets[split] = Dataset.from_list([{**row, "dataset": name} for row in splits[split]])
    return datasets


def locate_pairs(dataset: str) -> Path | None:
    """Return the file or folder of a dataset, or `None` for the Hub. Raises `DataError` if a path does not exist."""
    path = Path(dataset)
    if not path.exists() and (_suffix_of(path) or missing_folder(dataset)):
        raise DataError("no such file or folder", path)
    return path if path.exists() else None


def _suffix_of(path: Path) -> str | None:
    """Return the supported file extension of a path, or `None`."""
    name = path.name.removesuffix(".gz")
    for suffix in SUFFIXES:
        if name.endswith(suffix):
            return suffix
    return None


def _read_folder(folder: Path, names: Sequence[str]) -> dict[str, Rows]:
    files = sorted(path for path in folder.iterdir() if path.is_file())
    splits: dict[str, Rows] = {}
    for split, stems in SPLIT_FILES.items():
        candidates = []
        exact_candidates = []
        for path in files:
            is_readable = _suffix_of(path) or path.suffix == f".{names[0]}"
            if is_readable and path.name.startswith(stems):
                candidates.append(path)
                if path.name.partition(".")[0] in stems:
                    exact_candidates.append(path)
        # Prefer `test.tsv` to `test_2016_flickr.tsv`.
        candidates = exact_candidates or candidates
        check_single(split, [path.name for path in candidates], folder)
        if candidates:
            read = _read_file if _suffix_of(candidates[0]) else _read_parallel
            splits[split] = read(candidates[0], names)
    if not splits:
        endings = f"{', '.join(SUFFIXES)} or .{names[0]}"
        raise DataError(f"there is no train, validation or test file that ends in {endings}", folder)
    return splits


def _read_parallel(first: Path, names: Sequence[str]) -> Rows:
    """Read the lines of a file with source texts and, if there are two names, those of the file with target texts."""
    paths = [first, *[first.with_suffix(f".{name}") for name in names[1:]]]
    if not paths[-1].is_file():
        raise DataError(f"this file is missing next to {first.name}", paths[-1])
    columns = [_lines_of(path) for path in paths]
    num_sources = len(columns[0])
    num_targets = len(columns[-1])
    if num_sources != num_targets:
        longer = paths[0] if num_sources > num_targets else paths[-1]
        first_missing = min(num_sources, num_targets) + 1
        raise DataError("the other file of the pair has fewer lines", longer, first_missing)
    pattern = first.with_suffix(".*")
    records = []
    for line, texts in enumerate(zip(*columns, strict=True), 1):
        fields = dict(zip(names, texts, strict=True))
        records.append(Record(fields, str(pattern), line))
    return _rows(records, names, pattern)


def _lines_of(path: Path) -> list[str]:
    return [line.rstrip("\r\n") for line in read_lines(path)]


def _read_file(path: Path, names: Sequence[str]) -> Rows:
    suffix = _suffix_of(path)
    if suffix is None:
        raise DataError(f"a file of pairs must end in {', '.join(SUFFIXES)}", path)
    header = _tsv_header(path, names) if suffix == ".tsv" else ()
    return _rows(read_records(path, header), names, path)


def _tsv_header(path: Path, names: Sequence[str]) -> list[str]:
    """Return the columns `"1"`, `"2"`, ... if a file has no header, else an empty list."""
    cells = next(read_lines(path), "").rstrip("\r\n").split("\t")
    if set(names) <= set(cells):
        return []
    header = [str(number) for number in range(1, len(cells) + 1)]
    for name in names:
        if name not in header:
            first_line = ", ".join(cells)[:80]
            fault = f"unknown column. The first line has {first_line!r}. If it is not a header, choose from the"
            raise DataError(f"{fault} columns {', '.join(header)}", path, 1, name)
    return header


def _rows(records: Iterable[Record], names: Sequence[str], source: Path) -> Rows:
    """Return the rows of [`load_seq2seq`] without `dataset`. `source` is the file or dataset, for errors."""
    rows = []
    for record in records:
        nested = record.fields.get("translation")
        if isinstance(nested, Mapping):
            record = replace(record, fields=nested)
        texts = [record.text(name).strip() for name in names]
        if "" in texts:
            record.fail("the text is empty", names[texts.index("")])
        name = Path(record.file).name.partition(".")[0]
        row = {"id": f"{name}-{record.line}", "text": texts[0]}
        if len(texts) > 1:
            row["target"] = texts[1]
        rows.append(row)
    if not rows:
        raise DataError("the dataset has no rows", source)
    return rows


def _read_hub(name: str, names: Sequence[str]) -> dict[str, Rows]:
    from datasets import load_dataset

    locate_pairs(name)
    identifier, _, configuration = name.partition(":")
    arguments = [identifier, configuration] if configuration else [identifier]
    try:
        loaded = load_dataset(*arguments)
    except (OSError, ValueError) as error:
        fault = f"not a file or folder, and the Hub cannot be reached or does not have this dataset ({error})"
        raise DataError(fault, name) from error
    splits = {}
    for split in loaded:
        if split in SPLIT_FILES:
            source = Path(f"{name}/{split}")
            records = (Record(row, str(source), line) for line, row in enumerate(loaded[split]))
            splits[split] = _rows(records, names, source)
    return splits
