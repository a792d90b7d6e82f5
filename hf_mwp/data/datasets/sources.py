"""Sources of data sets: loaders, files and splits."""

import os
from collections.abc import Iterable
from pathlib import Path

from ..data_error import DataError
from ..reading.file_contents import RecordReader
from . import chinese, english
from .file_loader import FileLoader
from .hub_data import hub_folder
from .mwp_loader import MwpLoader, Rows


_LOADERS = {loader.name: loader for loader in (*chinese.LOADERS, *english.LOADERS)}
LOADERS: dict[str, type[MwpLoader]] = dict(sorted(_LOADERS.items()))
DEFAULT_DATASET = "math23k"
SPLITS = ("train", "validation", "test")
# Variable of the environment that names the folder of data sets; without it a checkout of the repository has some.
DATA_DIR = "HF_MWP_DATA_DIR"
_EXAMPLES_DIR = Path(__file__).parents[3] / "examples" / "data"


def read_splits(
    name: str | Path, near: str | Path | None = None, on_error: str = "raise", language: str = "en"
) -> tuple[dict[str, Rows], list[DataError]]:
    """
    Rows of a data set, of which the first split scheme and fold count, or of a file or folder, by split as the source
    has them, nothing checked and nothing left out, and what was skipped.

    A data set is looked for in the folder `near`, beside it, among the repository's examples, and last in the files of
    the folder itself. Errors and `on_error` as in [`load_mwp_dataset`]; the `language` is that of texts of files that
    state none and are not Chinese.
    """
    loader = find_loader(name, None, language)
    scheme, fold = find_scheme(loader, name, None, None)
    reader = RecordReader(_folder_near(loader, near), on_error, loader.origin)
    return loader.read(reader, scheme, fold), reader.damaged


def _folder_near(loader: MwpLoader, near: str | Path | None) -> Path:
    if isinstance(loader, FileLoader):
        return find_folder(loader, near)
    places = [] if near is None else [Path(near), Path(near).parent]
    beside = (place / folder for place in (*places, _default_dir()) for folder in (loader.name, *loader.folders))
    return next((place for place in beside if place.is_dir()), None) or find_folder(loader, near)


def read_part(
    source: str | Path, near: str | Path | None = None, on_error: str = "raise", language: str = "en"
) -> tuple[Rows, list[DataError]]:
    """Return rows and skipped errors of [`read_splits`]: all of a file, the named or training part of a data set."""
    name, part = split_name(source)
    splits, damaged = read_splits(name, near, on_error, language)
    if name not in LOADERS or part == "all":
        return [row for split in SPLITS for row in splits.get(split, ())], damaged
    return part_of(splits, name, [part or "train"]), damaged


def locate_part(source: str | Path, near: str | Path | None = None) -> Path:
    """Return the file or folder that [`read_part`] reads; `DataError` if it does not exist."""
    loader = find_loader(split_name(source)[0], None)
    return loader.path if isinstance(loader, FileLoader) else _folder_near(loader, near)


def locate_dataset(name: str | Path, data_dir: str | Path | None = None) -> Path:
    """Return the file or folder that [`load_mwp_dataset`] reads; `DataError` if it does not exist."""
    loader = find_loader(name, data_dir)
    return loader.path if isinstance(loader, FileLoader) else find_folder(loader, data_dir)


def part_of(splits: dict[str, Rows], name: str, parts: Iterable[str]) -> Rows:
    """Return the rows of the `parts` that exist; `DataError` if none does."""
    there = [part for part in parts if part in splits]
    if not there:
        raise DataError(f"{name} has no {' or '.join(parts)} part: it has {', '.join(splits)}")
    return [row for part in there for row in splits[part]]


def split_name(source: str | Path) -> tuple[str, str | None]:
    """Split `"ape210k:validation"` into name and part; without a data set's name there is no part."""
    name, _, part = str(source).partition(":")
    if name not in LOADERS or os.path.isfile(source):
        return str(source), None
    if part and part not in (*SPLITS, "all"):
        raise DataError(f"{source}: a data set's parts are {', '.join(SPLITS)}, all, not {part!r}")
    return name, part or None


def data_set_name(source: str | Path) -> str | None:
    """Return the data set that a source names (`"ape210k:validation"`), or `None` for a file or folder."""
    name, _ = split_name(source)
    return name if name in LOADERS else None


def find_loader(name: str | Path, data_dir: str | Path | None, language: str = "en") -> MwpLoader:
    """Return the loader of a name, file or folder; `DataError` if there is none."""
    if str(name) in LOADERS:
        return LOADERS[str(name)]()
    path = Path(data_dir or ".") / name
    # `os.path.exists` and not `Path.exists`, which fails for a text that is too long for a name.
    if not os.path.exists(path):
        path = hub_folder(name)
    if path is not None:
        return FileLoader(path, language)
    fault = f"there is no such file or folder, nor is it one of the data sets {', '.join(LOADERS)}"
    raise DataError(fault, Path(data_dir or ".") / name)


def find_scheme(loader: MwpLoader, name: str | Path, scheme: str | None, fold: int | None) -> tuple[str, int | None]:
    """Return the split scheme and fold to read; `ValueError` if the data set does not have them."""
    scheme = next(iter(loader.split_schemes)) if scheme is None else scheme
    if scheme not in loader.split_schemes:
        raise ValueError(f"{name} has no split scheme {scheme!r}: it has {', '.join(loader.split_schemes)}")
    folds = range(loader.fold_schemes.get(scheme, 0))
    if fold is None:
        return scheme, 0 if folds else None
    if isinstance(fold, bool) or not isinstance(fold, int) or fold not in folds:
        has = f"has folds 0 to {folds[-1]}, not {fold!r}" if folds else "has no folds: leave out `fold`"
        raise ValueError(f"the split scheme {scheme!r} of {name} {has}")
    return scheme, fold


def find_folder(loader: MwpLoader, data_dir: str | Path | None) -> Path:
    """Return the folder with a loader's files; `DataError` if it is not known."""
    if isinstance(loader, FileLoader):
        return loader.path.parent if loader.path.is_file() else loader.path
    parent = _default_dir() if data_dir is None else Path(data_dir)
    if data_dir is not None and not parent.is_dir():
        fetched = hub_folder(data_dir, (loader.name, *loader.folders))
        if fetched is None:
            raise DataError(f"`data_dir` is no folder. {loader.origin}", parent)
        return fetched
    found = [parent / folder for folder in (loader.name, *loader.folders) if (parent / folder).is_dir()]
    if found or data_dir is not None:
        return found[0] if found else parent
    raise DataError(
        f"{loader.name} is not here: give `data_dir`, a folder with its files or the Hub id of a data set repository, "
        f"or set {DATA_DIR} to the folder of all data sets. {loader.origin}"
    )


def _default_dir() -> Path:
    return Path(os.environ.get(DATA_DIR) or _EXAMPLES_DIR)
