"""Data files in data set repositories of the Hub."""

import os
import re
from pathlib import Path

from ..data_error import DataError
from ..reading.file_contents import RECORD_FILES


_HUB_ID = re.compile(r"\w[\w.-]*/\w[\w.-]*")


def hub_folder(name: str | Path, folders: tuple[str, ...] = ()) -> Path | None:
    """
    Return the folder of a repository's data files, downloaded to the cache: the repository's own, its `data`, or one
    of `folders`.

    Args:
        name (`str` or `Path`): Id of the repository (`"user/name"`).
        folders (`tuple[str, ...]`, *optional*): Folders to prefer.

    Returns:
        `Path` or `None`: `None` for what is a path, or cannot be an id.

    Raises:
        DataError: there is no such repository, or the Hub cannot be reached.
    """
    if os.path.exists(name) or not _HUB_ID.fullmatch(str(name)) or str(name).endswith(RECORD_FILES):
        return None
    from huggingface_hub import snapshot_download

    patterns = [f"*{ending}" for ending in (*RECORD_FILES, ".txt", ".tsv", ".tsv.gz")]
    try:
        folder = Path(snapshot_download(str(name), repo_type="dataset", allow_patterns=patterns))
    except OSError as error:
        told = " ".join(str(error).split())
        raise DataError(
            f"there is no such file or folder, and the Hub cannot be reached or has no such data set ({told})", name
        ) from error
    places = [folder / each for each in (*folders, "data") if (folder / each).is_dir()]
    return next((each for each in places if each.name in folders or not _has_records(folder)), folder)


def _has_records(folder: Path) -> bool:
    return any(path.name.endswith(RECORD_FILES) for path in folder.iterdir())
