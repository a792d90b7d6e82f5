"""How many layers the models of a recipe have, as far as that is known before they are made."""

from pathlib import Path

from ...building.student import UNUSED
from ...option_checks import as_list
from ...option_roles import Role
from ..stage_arguments import options_with
from .stage import Stage


# Layers of a student where nothing else is said.
STUDENT_LAYERS = 3


def source_layers(stage: Stage, online: bool = False) -> int | None:
    """
    Layers of the encoder that a stage starts from, before it keeps some of them; `None` if that cannot be known.
    `online` asks the Hub for models that are not here.
    """
    shape = stage.option(Role.SHAPE)
    if shape is not None:
        layers = shape.get("num_hidden_layers", STUDENT_LAYERS) if isinstance(shape, dict) else None
        return layers if type(layers) is int else None
    source = stage.option(Role.START)
    return None if source is None else model_layers(stage, source, online)


def made_layers(stage: Stage, online: bool = False) -> int | None:
    """Layers of the encoder of the model that a stage makes; see [`source_layers`]."""
    kept = stage.option(Role.LAYERS)
    if kept is None:
        # Without a start of its own it is cut from a teacher.
        is_cut = options_with(stage.command, Role.LAYERS) and stage.option(Role.START | Role.SHAPE) is None
        if is_cut and "student_layers" in UNUSED.get(f"student_start={stage.options.get('student_start')}", ()):
            return model_layers(stage, as_list(stage.option(Role.TEACHER))[0], online)
        if not is_cut and stage.option(Role.WIDTHS) is None:
            return source_layers(stage, online)
        kept = STUDENT_LAYERS
    if isinstance(kept, list):
        return len(kept)
    if "," in str(kept):
        return len(str(kept).split(","))
    return int(kept) if str(kept).strip().isdecimal() else None


def model_layers(stage: Stage, model: str, online: bool = False) -> int | None:
    """Layers of the encoder of a model that a stage's options name: another stage's, a folder's or the Hub's."""
    before = stage.input_at(model)
    return folder_layers(model, online) if before is None else made_layers(before, online)


def folder_layers(model: str | Path, online: bool = False) -> int | None:
    """Layers of the encoder of a model in a folder, or of the Hub; see [`source_layers`]."""
    from transformers import AutoConfig

    from ... import models  # noqa: F401 (registers the package's own types)

    try:
        config = AutoConfig.from_pretrained(str(model), local_files_only=not online, trust_remote_code=False)
    except (OSError, ValueError):
        return None
    return getattr(config, "num_hidden_layers", None)
