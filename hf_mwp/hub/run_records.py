"""Reading of run and evaluation folders for model cards."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path, PurePath
from typing import Any

import yaml

from ..options import affects_result, default_of
from ..options.option import WITHOUT_EFFECT
from ..options.stages import STAGES, options_of
from ..store.files import without_folder
from ..usage_error import UsageError
from .model_card import ModelFigures, TrainingStage


# Options that say where files lie.
PLACES = frozenset({"data_dir", "output_dir"})


def read_figures(folder: str | Path, model: str, split: str | None = None) -> ModelFigures:
    """
    Read the folder of an `hf-mwp evaluate` of `model`, or the `split` that a training measured; `UsageError` if it is
    none.
    """
    metrics = _read_mapping(Path(folder) / "metrics.json")
    if split is not None:
        metrics = {"dataset": _read_mapping(Path(folder) / "data.json").get("dataset"), split: metrics[split]}
    part = next((name for name in ("test", "validation", "train") if name in metrics), None)
    if part is None or "dataset" not in metrics:
        raise UsageError(f"{folder} is no evaluation: give the output folder of `hf-mwp evaluate`.")
    section = metrics[part]
    return ModelFigures(
        model,
        without_place(metrics["dataset"]),
        f"{part} ({section['scheme']}{', re-ranked' if section.get('reranked') else ''})",
        section.get("num_beams"),
        section.get("answer_match", ""),
        section["reports"],
        section.get("training_texts", {}).get("remark", ""),
        section.get("calibration"),
    )


def read_stage(folder: str | Path) -> TrainingStage:
    """Read the records in a run's folder, without local paths; `UsageError` if it is none, or one is damaged."""
    path = Path(folder)
    stage = _read_mapping(path / "stage.json", missing={})
    record = _read_mapping(path / "run.json", missing={})
    is_stage = (path / "stage.yaml").is_file()
    file = path / ("stage.yaml" if is_stage else "run_config.yaml")
    if not file.is_file():
        raise UsageError(f"{folder} is no run: it has neither stage.yaml nor run_config.yaml.")
    given = _read_mapping(file)
    command = stage.get("command") or record.get("command") or "hf-mwp"
    name = command.removeprefix("hf-mwp ")
    defaults = {option: default_of(field) for option, field in options_of(name).items()}
    if not is_stage:
        # A run's own record holds all options, also those that were not set.
        given = {key: value for key, value in given.items() if key not in defaults or value != defaults[key]}
    options = [each for command in STAGES for each in options_of(command).values()]
    hidden = WITHOUT_EFFECT | PLACES | {each.name for each in options if not affects_result(each)}
    shown = {key: without_place(value) for key, value in given.items() if key not in hidden}
    if "task" not in shown and {"dataset", "num_train_epochs"} <= defaults.keys():
        # The training data is shown even where it is the default.
        shown.setdefault("dataset", defaults["dataset"])
    if "seconds" in stage:
        # The run's own record has those of its last start alone.
        record = {**record, "wall_seconds": stage["seconds"]}
    task = _read_mapping(path / "data.json", missing={}).get("card") or {}
    return TrainingStage(stage.get("stage") or path.name, command, shown, record, task)


def without_place(value: Any) -> Any:
    """[`without_folder`], also for paths that do not exist any more: a Hub id has one slash at most."""
    if isinstance(value, list):
        return [without_place(item) for item in value]
    if not isinstance(value, str):
        return without_folder(value)
    tagger = "ltp:" if value.startswith("ltp:") else ""
    place = value.removeprefix(tagger)
    is_path = place.startswith(("/", "~", "./", "../")) or place.count("/") > 1
    return tagger + (PurePath(place).name if is_path else without_folder(place))


def _read_mapping(path: Path, missing: Mapping | None = None) -> Mapping[str, Any]:
    """A JSON or YAML file; `missing` if it is not there, `UsageError` if that is `None` or it holds no mapping."""
    kind, load = ("JSON", json.loads) if path.suffix == ".json" else ("YAML", yaml.safe_load)
    if missing is not None and not path.exists():
        return missing
    try:
        content = load(path.read_text(encoding="utf-8"))
        if not isinstance(content, Mapping):
            raise ValueError(f"it must hold a mapping, not {content!r}")
    except (OSError, ValueError, yaml.YAMLError) as error:
        raise UsageError(f"{path} cannot be read as {kind}: {error}.") from error
    return content
