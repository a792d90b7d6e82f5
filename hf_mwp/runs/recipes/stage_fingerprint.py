"""What the result of a stage depends on, in one number."""

import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from ... import __version__
from ...data.datasets.sources import data_set_name, locate_dataset, locate_part
from ...option_roles import Role
from ...store.files import content_digest
from ...store.finished_folder import digest_of
from ..stage_arguments import names_task, options_of, options_with, trains


# Options that name data sets and files of problems and texts.
SOURCES = Role.DATASET | Role.SOURCES | Role.EXTRA
VERSION = 2  # of what the commands make of their options: a stage of another one is another stage


def fingerprint(command: str, options: Mapping[str, Any], inputs: Mapping[str, str], launch: str | None = None) -> str:
    """
    Digest of what a stage's result depends on: the command, its options (but for the places of caches, and what is
    told of a run), the stages it builds on, the contents of the data sets and of the local files and folders that its
    options name, the version of this package, and the program that launches it if it trains: in two processes a step
    has twice as many examples. `inputs` are the fingerprints of the stages, by the text that stands for their folders.
    """

    def described(value: Any) -> Any:
        if isinstance(value, Mapping):
            return {str(key): described(item) for key, item in value.items()}
        if isinstance(value, (list, tuple)):
            return [described(item) for item in value]
        if isinstance(value, str):
            for folder, digest in inputs.items():
                value = value.replace(folder, digest)
            # `os.path.exists` and not `Path.exists`, which fails for a text that is too long for a name.
            if value and os.path.exists(value):
                return {"content": content_digest(value)}
            # `ltp:FOLDER`: a word before the path says what is there.
            kind, _, path = value.partition(":")
            if path and os.path.exists(path):
                return {kind: content_digest(path)}
        return _number(value)

    def described_source(name: str, source: Any) -> Any:
        if isinstance(source, (list, tuple)):
            return [described_source(name, item) for item in source]
        try:
            place = locate_source(command, name, source, options, inputs)
        except ValueError:
            place = None
        if place is None:
            return described(source)
        # Of a data set its name and part, of a file its kind.
        known = data_set_name(source)
        return {"source": source if known else place.suffix, "content": content_digest(place)}

    unused = options_with(command, Role.CACHE | Role.TOLD)
    content = {name: value for name, value in options.items() if name not in unused}
    for name in () if names_task(command, options) else options_with(command, Role.DATASET):
        content.setdefault(name, options_of(command)[name].default)
    # What the command writes is not there before it has run.
    names = [name for name in options_with(command, Role.WRITTEN) if name in content]
    written = {name: Path(str(content.pop(name))).name for name in names}
    sources = [name for name in options_with(command, SOURCES) if name in content]
    found = {name: described_source(name, content.pop(name)) for name in sources}
    for name in options_with(command, Role.NEAR):
        if found and not is_made(content.get(name), inputs):
            # What is read of it is known by its content.
            content.pop(name, None)
    options = {**described(content), **found, **written}
    content = {"command": command, "options": options, "version": [__version__, VERSION]}
    if launch is not None and trains(command):
        content["launch"] = launch
    return digest_of(content)


def locate_source(
    command: str, name: str, source: Any, options: Mapping[str, Any], inputs: Iterable[str]
) -> Path | None:
    """
    The file or folder that a source, named by an option of a stage, is read from; `None` if one of the stages that
    fill the folders `inputs` is to make or to find it. [`~data.DataError`] if it is not there.
    """
    known, inputs = options_of(command), list(inputs)
    role, near = known[name].role, next((options.get(each) for each in options_with(command, Role.NEAR)), None)
    if not isinstance(source, str) or is_made(source, inputs) or is_made(near, inputs):
        return None
    if role & Role.DATASET:
        return locate_dataset(source, near)
    if role & Role.EXTRA:
        (name,) = options_with(command, Role.DATASET)
        dataset = options.get(name, known[name].default)
        beside = None if is_made(dataset, inputs) else locate_dataset(dataset, near)
        near = beside if beside is None or beside.is_dir() else beside.parent
    return locate_part(source, near)


def is_made(source: Any, inputs: Iterable[str]) -> bool:
    """Whether one of these stages makes what is named."""
    return any(folder in str(source) for folder in inputs)


def _number(value: Any) -> Any:
    """Numbers written in several ways, `"2e-4"` and `0.0002`, as one."""
    if isinstance(value, bool) or not isinstance(value, (int, float, str)):
        return value
    try:
        return float(value)
    except (ValueError, OverflowError):
        return value
