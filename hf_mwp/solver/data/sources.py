"""Functions that find the loader, the files and the split of a dataset or source."""

import os
import re
from collections.abc import Iterable
from itertools import product
from pathlib import Path

from hf_mwp.utils.checked_types import checked
from hf_mwp.utils.downloads import missing_folder

from . import chinese, english
from .data_error import DataError
from .file_contents import RECORD_FILES, RecordReader, is_record_file
from .file_format import FileFormat
from .mwp_loader import FileLoader, MwpLoader
from .record import Rows


_LOADERS = {loader.name: loader for loader in (*chinese.LOADERS, *english.LOADERS)}
LOADERS: dict[str, type[MwpLoader]] = dict(sorted(_LOADERS.items()))
DEFAULT_DATASET = "math23k"
SPLITS = ("train", "validation", "test")
DATA_DIR = "HF_MWP_DATA_DIR"  # Environment variable with the folder of all datasets.
_EXAMPLES_DIR = Path(__file__).parents[3] / "examples" / "data"
_HUB_ID = re.compile(r"\w[\w.-]*/\w[\w.-]*")


@checked
def add_dataset(loader: type[MwpLoader]) -> None:
    """Add a dataset, which [`load_mwp_dataset`] and the commands then find by the `name` of its loader. A loader may
    be added again after a change.

    Args:
        loader (`type[MwpLoader]`): Class derived from [`MwpLoader`] with a `name`.

    Raises:
        ValueError: `loader` is no such class, or another loader has its name.
    """
    if not issubclass(loader, MwpLoader):
        raise ValueError(f"Expected a class derived from `MwpLoader`, got {loader!r}. Pass the class itself.")
    name = getattr(loader, "name", None)
    if not name:
        raise ValueError(f"{loader.__name__} has no name. Set the class attribute `name`.")
    present = LOADERS.get(name, loader)
    if present.__qualname__ != loader.__qualname__:
        raise ValueError(f"The dataset {name!r} already has the loader {present.__name__}. Choose another name.")
    LOADERS[name] = loader


def read_part(
    source: str | Path,
    near: str | Path | None = None,
    on_error: str = "raise",
    language: str = "en",
    parts: Iterable[str] = ("train",),
    file_format: FileFormat | None = None,
) -> tuple[Rows, list[DataError]]:
    """Read all rows of a file, of a split of a dataset (`"ape210k:validation"`), or of the splits `parts` of a dataset
    (default split scheme and first fold), without selecting usable rows. Return the rows, and the errors of skipped
    records. The folder of a dataset is searched for in `near`, in the parent of `near`, and in the default folder of
    all datasets. See [`load_mwp_dataset`] for errors and `on_error`, and [`FileLoader`] for `language` and
    `file_format`."""
    name, named_split = split_name(source)
    loader = find_loader(name, None, language, file_format)
    reader = make_reader(loader, find_folder(loader, near, beside=True), on_error)
    splits = loader.read(reader, *find_scheme(loader, name, None, None))
    if isinstance(loader, FileLoader) or named_split == "all":
        parts = SPLITS
    elif named_split:
        parts = [named_split]
    present = [split for split in parts if split in splits]
    if not present:
        raise DataError(f"{name} has no {' or '.join(parts)} split. Choose from {', '.join(splits)}")
    rows = []
    for split in present:
        rows += splits[split]
    return rows, reader.damaged


def locate_dataset(name: str | Path, data_dir: str | Path | None = None, beside: bool = False) -> Path:
    """Return the file or folder that [`load_mwp_dataset`] reads, or with `beside` that [`read_part`] reads."""
    if beside:
        loader = find_loader(split_name(name)[0], None)
    else:
        loader = find_loader(name, data_dir)
    if isinstance(loader, FileLoader):
        return loader.path
    return find_folder(loader, data_dir, beside)


def split_name(source: str | Path) -> tuple[str, str | None]:
    """Return the dataset and split (or `None`) of a name such as `"ape210k:validation"`, or a path and `None`."""
    name, _, split = str(source).partition(":")
    if name not in LOADERS or os.path.isfile(source):
        return str(source), None
    if split and split not in (*SPLITS, "all"):
        raise DataError(f"{source}: unknown split {split!r}. Choose one of {', '.join(SPLITS)}, all")
    return name, split or None


def find_loader(
    name: str | Path,
    data_dir: str | Path | None,
    language: str = "en",
    file_format: FileFormat | None = None,
    usual_names: bool = True,
) -> MwpLoader:
    """Return the loader of a dataset name, file or folder. Raises `DataError` if there is no such source. See
    [`FileLoader`] for the arguments of files."""
    if str(name) in LOADERS:
        return LOADERS[str(name)]()
    path = Path(data_dir or ".") / name
    # `Path.exists` raises an error for a name that is too long.
    if not os.path.exists(path):
        folder = _hub_folder(name)
        if folder is None:
            raise DataError(f"no such file or folder. Pass a path, or one of the datasets {', '.join(LOADERS)}", path)
        path = folder
    return FileLoader(path, language, file_format, usual_names)


def make_reader(loader: MwpLoader, folder: Path, on_error: str) -> RecordReader:
    """Return the reader of the files in the folder of a loader."""
    file_format = getattr(loader, "file_format", FileFormat())
    return RecordReader(folder, on_error, loader.origin, file_format)


def find_scheme(loader: MwpLoader, name: str | Path, scheme: str | None, fold: int | None) -> tuple[str, int | None]:
    """Return the split scheme and the fold to read. Raises `ValueError` if the dataset does not have them."""
    if scheme is None:
        scheme = next(iter(loader.split_schemes))
    if scheme not in loader.split_schemes:
        raise ValueError(f"{name} has no split scheme {scheme!r}. Choose one of {', '.join(loader.split_schemes)}.")
    num_folds = loader.split_schemes[scheme]
    if fold is None:
        first_fold = 0 if num_folds else None
        return scheme, first_fold
    if fold not in range(num_folds):
        fault = "has no folds. Leave out `fold`."
        if num_folds:
            fault = f"has folds 0 to {num_folds - 1}, got `fold` {fold!r}."
        raise ValueError(f"The split scheme {scheme!r} of {name} {fault}")
    return scheme, fold


def find_folder(loader: MwpLoader, data_dir: str | Path | None, beside: bool = False) -> Path:
    """Return the folder with the files of a loader: a folder of its name in `data_dir`, with `beside` also next to
    `data_dir` and in the default folder, or else `data_dir` itself, unless `beside` and it has the name of another
    dataset. Raises `DataError` if it is not found."""
    if isinstance(loader, FileLoader):
        return loader.path.parent if loader.path.is_file() else loader.path
    parents = []
    if data_dir is not None:
        parents.append(Path(data_dir))
        if beside:
            parents.append(Path(data_dir).parent)
    if data_dir is None or beside:
        parents.append(Path(os.environ.get(DATA_DIR) or _EXAMPLES_DIR))
    names = (loader.name, *loader.folders)
    for parent, name in product(parents, names):
        if (parent / name).is_dir():
            return parent / name
    if data_dir is None or (beside and Path(data_dir).resolve().name in LOADERS):
        raise DataError(
            f"{loader.name} was not found. Set `data_dir` to the folder of its files or the Hub id of a dataset "
            f"repository, or {DATA_DIR} to the folder of all datasets. {loader.origin}"
        )
    if os.path.isdir(data_dir):
        return Path(data_dir)
    folder = _hub_folder(data_dir, names)
    if folder is None:
        raise DataError(f"`data_dir` is not a folder. {loader.origin}", data_dir)
    return folder


def _hub_folder(name: str | Path, folders: tuple[str, ...] = ()) -> Path | None:
    """Download the data files of a dataset repository, and return their folder: one of `folders`, the root, or `data`.
    Returns `None` if the name is a path or not a valid id. Raises `DataError` if the Hub cannot be reached."""
    is_local = os.path.exists(name) or missing_folder(name) is not None
    if is_local or not _HUB_ID.fullmatch(str(name)) or is_record_file(name):
        return None
    from huggingface_hub import snapshot_download

    patterns = [f"*{ending}" for ending in (*RECORD_FILES, ".txt")]
    try:
        folder = Path(snapshot_download(str(name), repo_type="dataset", allow_patterns=patterns))
    except OSError as error:
        reason = " ".join(str(error).split())
        fault = f"not a file or folder, and the Hub cannot be reached or does not have this dataset ({reason})"
        raise DataError(fault, name) from error
    if not any(map(is_record_file, folder.iterdir())):
        folders = (*folders, "data")
    for folder_name in folders:
        if (folder / folder_name).is_dir():
            return folder / folder_name
    return folder
