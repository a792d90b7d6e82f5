"""What is said about the teacher of an arm."""

from collections.abc import Iterable, Mapping
from pathlib import Path

from ..building.encoder import parse_mapping
from ..options.checks import as_list
from ..recipes import Recipe, Stage
from ..recipes.layers import STUDENT_LAYERS, folder_layers, source_layers
from ..store.files import without_folder
from ..store.runs.run_folder import last_options


def describe_teacher(recipe: Recipe, stage: str, stages: Mapping[str, Stage]) -> str:
    """
    What the teacher is and how long it was trained, in words. If the `stage` that trains it is not among those that
    are run, the folder that another one has as its `teacher` is described.
    """
    if stage in stages:
        options, encoder = recipe.stages[stage].options, _encoder(recipe.stages[stage])
    else:
        folder = _given_teacher(stages.values())
        if folder is None:
            return ""
        options, layers = last_options(folder), folder_layers(folder)
        encoder = folder.name if layers is None else f"{folder.name}, {layers} layers"
    steps, epochs = options.get("max_steps"), options.get("num_train_epochs", 3)
    length = f"{steps} steps" if steps and steps > 0 else f"{epochs} epoch{'' if epochs == 1 else 's'}"
    data = without_folder(options.get("dataset") or options.get("task") or "pretraining")
    return f"{encoder}, {data}, {length}"


def count_layers(recipe: Recipe, stage: str, stages: Mapping[str, Stage]) -> int | None:
    """Layers that the encoder of a teacher has before the arm cuts it; `None` if that cannot be known."""
    if stage not in stages:
        folder = _given_teacher(stages.values())
        return None if folder is None else folder_layers(folder)
    return source_layers(recipe.stages[stage], online=True)


def _given_teacher(stages: Iterable[Stage]) -> Path | None:
    return next((Path(as_list(stage.options["teacher"])[0]) for stage in stages if "teacher" in stage.options), None)


def weights_missing(name: str | None) -> str | None:
    """Why pretrained weights cannot be had; `None` if they can."""
    from transformers.utils import cached_file

    if name is None:
        return "no weights are named"
    if Path(name).is_dir():
        return None
    try:
        cached_file(name, "config.json")
    except (OSError, ValueError) as error:
        return f"the weights of {without_folder(name)} cannot be had ({type(error).__name__})"
    return None


def _encoder(stage: Stage) -> str:
    options = stage.options
    shape = parse_mapping("encoder_config", options.get("encoder_config"))
    if shape is not None:
        return f"random weights, {shape.get('num_hidden_layers', STUDENT_LAYERS)} x {shape.get('hidden_size', 312)}"
    source, layers = options.get("encoder") or options.get("solver"), options.get("encoder_layers")
    before = stage.input_at(source)
    name = without_folder(source) if before is None else f"{_encoder(before)}, after stage {before.name}"
    return f"{name}, layers {layers}" if layers is not None else str(name)
