"""Readers of run and evaluation folders for model cards."""

from collections.abc import Mapping
from dataclasses import Field
from pathlib import Path
from typing import Any

from hf_mwp.commands.options.stages import STAGES, options_of
from hf_mwp.utils.files import shorten_paths
from hf_mwp.utils.option import WITHOUT_EFFECT, affects_result, default_of
from hf_mwp.utils.run_folder import START_OPTIONS, read_mapping
from hf_mwp.utils.usage_error import UsageError

from .model_card import ModelFigures, TrainingStage


# Options that a card does not show: file locations, and how a run was started.
HIDDEN = frozenset({"data_dir", "output_dir", *START_OPTIONS})


def read_figures(folder: str | Path, model: str, split: str | None = None) -> ModelFigures:
    """Read the figures of `model` in a folder of `hf-mwp evaluate` or, with `split`, in that of a training run."""
    metrics = read_mapping(Path(folder) / "metrics.json")
    if split is not None:
        metrics = {"dataset": read_mapping(Path(folder) / "data.json").get("dataset"), split: metrics[split]}
    for split in ("test", "validation", "train"):
        if split in metrics:
            break
    section = metrics.get(split)
    if not isinstance(section, Mapping) or "dataset" not in metrics or "reports" not in section:
        raise UsageError(f"{folder} contains no evaluation. Pass the output folder of `hf-mwp evaluate`.")
    scheme = section["scheme"]
    if section.get("reranked"):
        scheme += ", re-ranked"
    return ModelFigures(
        model,
        shorten_paths(metrics["dataset"]),
        f"{split} ({scheme})",
        section.get("num_beams"),
        section.get("answer_match", ""),
        section["reports"],
        section.get("training_texts", {}).get("remark", ""),
        section.get("calibration"),
    )


def read_stage(folder: str | Path) -> TrainingStage:
    """Read the records of a run, without local paths. Raises `UsageError` if they are missing or damaged."""
    path = Path(folder)
    stage = read_mapping(path / "stage.json", missing={})
    record = read_mapping(path / "run.json", missing={})
    is_stage = (path / "stage.yaml").is_file()
    options = read_mapping(path / ("stage.yaml" if is_stage else "run_config.yaml"))
    command = stage.get("command") or record.get("command") or "hf-mwp"
    name = command.removeprefix("hf-mwp ")
    defaults = {option: default_of(field) for option, field in options_of(name, options.get("task")).items()}
    every_option = _options_of_commands()
    if not is_stage:
        # `run_config.yaml` contains all options, in older runs also those of other tasks. Keep only values that differ
        # from the defaults.
        if defaults:
            options = {key: value for key, value in options.items() if key in defaults or key not in every_option}
        options = {key: value for key, value in options.items() if key not in defaults or value != defaults[key]}
    hidden = WITHOUT_EFFECT | HIDDEN
    hidden |= {key for key, field in every_option.items() if not affects_result(field)}
    options = {key: shorten_paths(value) for key, value in options.items() if key not in hidden}
    if "task" not in options and {"dataset", "num_train_epochs"} <= defaults.keys():
        # Show the training data even if it is the default.
        options.setdefault("dataset", defaults["dataset"])
    if "seconds" in stage:
        # `run.json` has only the duration since the last start.
        record = {**record, "wall_seconds": stage["seconds"]}
    return TrainingStage(stage.get("stage") or path.name, command, options, record, read_task(folder))


def _options_of_commands() -> dict[str, Field]:
    options: dict[str, Field] = {}
    for command in STAGES:
        options |= options_of(command)
    return options


def read_task(folder: str | Path) -> Mapping[str, Any]:
    """Return the description of the task in the folder of a run ([`~tasks.Task.card`]), empty if there is none."""
    return read_mapping(Path(folder) / "data.json", missing={}).get("card") or {}
