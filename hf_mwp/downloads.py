"""Download options of a model, reused for the files beside it."""

from collections.abc import Mapping
from contextlib import suppress
from os import PathLike
from pathlib import Path
from typing import Any
from weakref import WeakKeyDictionary


# Arguments of `from_pretrained` that say where and how files are found; the last two belong to one repository.
HUB_OPTIONS = ("cache_dir", "local_files_only", "proxies", "token", "revision", "subfolder")
OF_ONE_REPOSITORY = HUB_OPTIONS[-2:]

# No attribute of the model, which may be copied and pickled, and a token with it.
_options: WeakKeyDictionary[Any, dict[str, Any]] = WeakKeyDictionary()


def hub_options(kwargs: Mapping[str, Any]) -> dict[str, Any]:
    """Return those of the arguments of a `from_pretrained` that are among `HUB_OPTIONS`."""
    return {name: kwargs[name] for name in HUB_OPTIONS if name in kwargs}


def note_download(model: Any, options: Mapping[str, Any]) -> None:
    """Remember the [`hub_options`] that a model was loaded with."""
    _options[model] = {name: value for name, value in options.items() if value is not None}


def download_options(model: Any, source: str | PathLike | None = None) -> dict[str, Any]:
    """
    Return the options for a file beside a model, or for one of another `source`, which has its own revisions; none for
    a local folder.
    """
    own = getattr(model, "name_or_path", None)
    source = own if source is None else source
    if not source or Path(source).is_dir():
        return {}
    options: dict[str, Any] = {}
    # An object that is no model may not be a key of the map.
    with suppress(TypeError):
        options |= _options.get(model, {})
    if str(source) != str(own):
        return {name: value for name, value in options.items() if name not in OF_ONE_REPOSITORY}
    # Transformers before 5.23 names the commit that a branch or tag had.
    commit = getattr(getattr(model, "config", None), "_commit_hash", None)
    return options if commit is None else options | {"revision": commit}


def find_beside(name_or_path: str | PathLike, file_name: str, **kwargs) -> Path | None:
    """
    Return a file of a model's folder or repository that not every model has; `None` if there is none, or the folder is
    gone. `kwargs` (`revision`, `token`, ...) go to the download.
    """
    folder = Path(name_or_path)
    if folder.is_dir() or folder.is_absolute():
        return folder / file_name if (folder / file_name).is_file() else None
    from transformers.utils import cached_file

    quiet = {"_raise_exceptions_for_missing_entries": False, "_raise_exceptions_for_connection_errors": False}
    try:
        found = cached_file(str(name_or_path), file_name, **quiet, **kwargs)
    except OSError:
        # Neither a folder nor a repository, such as a relative path that is gone.
        return None
    return None if found is None else Path(found)
