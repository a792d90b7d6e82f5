"""Files behind options that name problems or texts, as [`~options.option`] takes them for `locate`."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from .corpus.pretraining_texts import read_texts
from .datasets.sources import locate_dataset, locate_part
from .glue.glue_sources import GLUE_SOURCES
from .seq2seq.load_seq2seq import locate_pairs


def locate_problems(source: str, options: Mapping[str, Any]) -> Path | None:
    """Return the file or folder of a data set; `None` for one of the Hub, and for tasks of GLUE."""
    task = options.get("task")
    if task == "seq2seq":
        return locate_pairs(source)
    return None if task in GLUE_SOURCES else locate_dataset(source, options.get("data_dir"))


def locate_source(source: str, options: Mapping[str, Any]) -> Path | None:
    """Return the file or folder of a source of problems or texts: a file, a data set, or one of its splits."""
    is_pairs = options.get("task") == "seq2seq"
    return locate_pairs(source) if is_pairs else locate_part(source, options.get("data_dir"))


def locate_texts(source: str, options: Mapping[str, Any]) -> Path:
    """Return the file or folder of a source of texts; a file must have one of the known extensions."""
    read_texts(source, data_dir=options.get("data_dir"))  # checks its sources, and reads nothing yet
    return locate_source(source, options)


def locate_extra(source: str, options: Mapping[str, Any]) -> Path | None:
    """Return the file or folder of a source beside the data set of the same options."""
    near = options.get("data_dir")
    if options.get("dataset") is not None:
        dataset = locate_dataset(options["dataset"], near)
        near = dataset if dataset.is_dir() else dataset.parent
    return locate_part(source, near)


def locate_extra_texts(source: str, options: Mapping[str, Any]) -> Path | None:
    """Return the file or folder of a source of texts beside the data set; see [`locate_texts`]."""
    read_texts(source)
    return locate_extra(source, options)
