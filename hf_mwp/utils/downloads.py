"""Download options of a model, reused for further files of its repository."""

import os
from collections.abc import Iterable, Mapping
from contextlib import suppress
from difflib import get_close_matches
from os import PathLike
from pathlib import Path
from typing import Any
from weakref import WeakKeyDictionary

from .usage_error import UsageError


# Arguments of `from_pretrained` for the location and download of files. The last two are specific to a repository.
HUB_OPTIONS = ("cache_dir", "local_files_only", "proxies", "token", "revision", "subfolder")
OF_ONE_REPOSITORY = HUB_OPTIONS[-2:]

# Files with the terms of a model, which its copies keep.
LICENCES = ("LICENSE", "LICENSE.md", "LICENSE.txt", "NOTICE", "NOTICE.md", "NOTICE.txt")

# Not stored as an attribute of the model, because a token would be copied and pickled with the model.
_options: WeakKeyDictionary[Any, dict[str, Any]] = WeakKeyDictionary()


def hub_options(kwargs: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments of a `from_pretrained` call that are in `HUB_OPTIONS`."""
    return {name: kwargs[name] for name in HUB_OPTIONS if name in kwargs}


def note_download(model: Any, options: Mapping[str, Any]) -> None:
    """Store the [`hub_options`] with which a model was loaded."""
    _options[model] = {name: value for name, value in options.items() if value is not None}


def download_options(model: Any, source: str | PathLike | None = None) -> dict[str, Any]:
    """Return the options for downloading a file from the model's repository. For a different `source`, options
    specific to the model's repository (`revision`, `subfolder`) are left out; for a local folder, all options."""
    model_source = getattr(model, "name_or_path", None)
    if source is None:
        source = model_source
    if not source or Path(source).is_dir():
        return {}
    options = {}
    # An object that is not a model may not be usable as a key of the dictionary.
    with suppress(TypeError):
        options |= _options.get(model, {})
    if str(source) != str(model_source):
        return {name: value for name, value in options.items() if name not in OF_ONE_REPOSITORY}
    # Transformers before 5.23 stores the commit to which a branch or tag was resolved.
    commit = getattr(getattr(model, "config", None), "_commit_hash", None)
    if commit is not None:
        options["revision"] = commit
    return options


def missing_folder(name: str | PathLike) -> str | None:
    """Return an error message for a local path that does not exist, `None` for an existing path or a Hub id. A name
    with one slash is taken for a Hub id, unless the local folder before the slash contains a similar name."""
    path = Path(name)
    if os.path.exists(path):
        return None
    num_slashes = str(name).count("/")
    is_local = num_slashes > 1 or path.is_absolute() or str(name).startswith((".", "~"))
    siblings = []
    if num_slashes and os.path.isdir(path.parent):
        siblings = os.listdir(path.parent)
    similar = [str(path.parent / sibling) for sibling in get_close_matches(path.name, siblings)]
    if not (is_local or similar):
        return None
    hint = f" Did you mean {' or '.join(similar)}?" if similar else ""
    return f"There is no folder {name}.{hint}"


def find_beside(name_or_path: str | PathLike, file_name: str, **kwargs) -> Path | None:
    """Return the path of a file in a model's folder or repository, or `None`. `kwargs` are passed to the download."""
    folder = Path(name_or_path)
    if os.path.exists(folder) or missing_folder(folder):
        return folder / file_name if (folder / file_name).is_file() else None
    from transformers.utils import cached_file

    quiet = {"_raise_exceptions_for_missing_entries": False, "_raise_exceptions_for_connection_errors": False}
    try:
        path = cached_file(str(name_or_path), file_name, **quiet, **kwargs)
    except OSError:
        # Neither a folder nor a repository, for example a relative path to a deleted folder.
        return None
    return None if path is None else Path(path)


def read_beside(name_or_path: str | PathLike, file_names: Iterable[str]) -> dict[str, bytes]:
    """Return the contents of the files that exist in a model's folder or repository, by name. Raises `UsageError` for
    a link to a file of another folder; see [`check_links`]."""
    paths = {}
    for name in file_names:
        path = find_beside(name_or_path, name)
        if path is not None:
            paths[name] = path
    check_links(paths.values())
    return {name: path.read_bytes() for name, path in paths.items()}


def check_links(paths: Iterable[Path]) -> None:
    """Raise `UsageError` for files whose content must not be copied or published as a part of their folder: links that
    end outside of the folder. In the Hub's cache, the files of a repository are links to its folder `blobs`."""
    for path in paths:
        folder = path.parent.resolve()
        allowed = [folder]
        if folder.parent.name == "snapshots":
            allowed.append(folder.parent.parent / "blobs")
        target = path.resolve()
        if not any(map(target.is_relative_to, allowed)):
            raise UsageError(f"{path} is a link to {target}, outside of its folder. Replace the link by a copy.")
