"""Functions that find the files of options for problems or texts, used as `locate` of [`~options.option`]."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from hf_mwp.commands.tasks.glue_files import GLUE_SOURCES, find_glue_folder
from hf_mwp.commands.tasks.seq2seq_files import locate_pairs
from hf_mwp.solver.corpus.pretraining_texts import read_texts
from hf_mwp.solver.data.sources import locate_dataset


def locate_problems(source: str, options: Mapping[str, Any]) -> Path | None:
    """Return the file or folder of a dataset, or `None` for GLUE and sequence-to-sequence datasets from the Hub."""
    task = options.get("task")
    if task == "seq2seq":
        return locate_pairs(source)
    if task in GLUE_SOURCES:
        return None
    return locate_dataset(source, options.get("data_dir"))


def locate_glue(data_dir: str, options: Mapping[str, Any]) -> Path | None:
    """Return the folder of a GLUE task in `data_dir`, or `None` for other tasks, which locate their `dataset`."""
    task = options.get("task")
    if task in GLUE_SOURCES:
        return find_glue_folder(task, data_dir)
    return None


def locate_source(source: str, options: Mapping[str, Any]) -> Path | None:
    """Return the file or folder of a source of problems or texts: a file, a dataset, or a split of a dataset. It may
    be next to the dataset in `options`."""
    if options.get("task") == "seq2seq":
        return locate_pairs(source)
    folder = options.get("data_dir")
    if options.get("dataset") is not None:
        dataset = locate_dataset(options["dataset"], folder)
        folder = dataset if dataset.is_dir() else dataset.parent
    return locate_dataset(source, folder, beside=True)


def locate_texts(source: str, options: Mapping[str, Any]) -> Path | None:
    """Return the file or folder of a source of texts, as [`locate_source`]. Other types of files are refused."""
    read_texts(source)  # Checks the source without reading it.
    return locate_source(source, options)
