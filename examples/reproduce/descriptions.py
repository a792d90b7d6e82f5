"""Descriptions of teachers and training data, and the size and cost of an encoder."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import torch
from transformers import AutoConfig
from transformers.utils import cached_file

from hf_mwp.commands.building.encoder import parse_layers
from hf_mwp.commands.recipes import Recipe, Stage
from hf_mwp.compress.models import MwpStudentConfig, MwpStudentModel
from hf_mwp.solver.metrics import count_flops, count_parameters
from hf_mwp.utils.checks import as_list
from hf_mwp.utils.files import shorten_paths
from hf_mwp.utils.run_folder import last_options
from hf_mwp.utils.yaml_values import parse_mapping


# Layers of a student where nothing else is said.
STUDENT_LAYERS = 3


def describe_teacher(recipe: Recipe, stage: str, stages: Mapping[str, Stage]) -> str:
    """
    Describe the teacher's encoder, data and training length. If the `stage` that trains it is not among the `stages`,
    describe the folder that one of them has as its `teacher`.
    """
    if stage in stages:
        options = recipe.stages[stage].options
        encoder = _encoder(recipe.stages[stage])
    else:
        folder = _given_teacher(stages.values())
        if folder is None:
            return ""
        options = last_options(folder)
        layers = _folder_layers(folder)
        encoder = folder.name
        if layers is not None:
            encoder += f", {layers} layers"
    steps = options.get("max_steps")
    epochs = options.get("num_train_epochs", 3)
    if steps and steps > 0:
        length = f"{steps} steps"
    elif epochs == 1:
        length = f"{epochs} epoch"
    else:
        length = f"{epochs} epochs"
    data = shorten_paths(options.get("dataset") or options.get("task") or "pretraining")
    return f"{encoder}, {data}, {length}"


def count_layers(recipe: Recipe, stage: str, stages: Mapping[str, Stage]) -> int | None:
    """Count the layers of a teacher's encoder before the arm cuts it; `None` if that is not known."""
    if stage not in stages:
        folder = _given_teacher(stages.values())
        if folder is None:
            return None
        return _folder_layers(folder)
    return _source_layers(recipe.stages[stage])


def _source_layers(stage: Stage) -> int | None:
    """Count the layers of the encoder that a stage starts from, before it keeps some of them."""
    shape = parse_mapping("encoder_config", stage.options.get("encoder_config"))
    if shape is not None:
        return shape.get("num_hidden_layers", STUDENT_LAYERS)
    source = stage.options.get("encoder") or stage.options.get("solver")
    before = _stage_at(stage, source)
    if before is None:
        if source is None:
            return None
        return _folder_layers(source)
    layers = parse_layers(before.options.get("encoder_layers"))
    if isinstance(layers, int):
        return layers
    if layers is not None:
        return len(layers)
    if "project_to" in before.options:
        return STUDENT_LAYERS
    return _source_layers(before)


def _folder_layers(model: str | Path) -> int | None:
    """Count the layers of a model's encoder; `None` if its configuration cannot be loaded."""
    try:
        config = AutoConfig.from_pretrained(str(model), trust_remote_code=False)
    except (OSError, ValueError):
        return None
    return getattr(config, "num_hidden_layers", None)


def _stage_at(stage: Stage, folder: str | None) -> Stage | None:
    """Return the stage that another one builds on and that fills this folder."""
    for source in stage.inputs:
        if str(source.folder) == str(folder):
            return source
    return None


def _given_teacher(stages: Iterable[Stage]) -> Path | None:
    for stage in stages:
        if "teacher" in stage.options:
            return Path(as_list(stage.options["teacher"])[0])
    return None


def weights_missing(name: str | None) -> str | None:
    """Return the reason why pretrained weights are unavailable; `None` if they are available."""
    if name is None:
        return "no weights are named"
    if Path(name).is_dir():
        return None
    try:
        cached_file(name, "config.json")
    except (OSError, ValueError) as error:
        return f"the weights of {shorten_paths(name)} cannot be had ({type(error).__name__})"
    return None


def _encoder(stage: Stage) -> str:
    options = stage.options
    shape = parse_mapping("encoder_config", options.get("encoder_config"))
    if shape is not None:
        # One head divides any width: the description does not tell heads.
        config = AutoConfig.for_model(**{"model_type": "mwp_student", "num_attention_heads": 1, **shape})
        layers = config.num_hidden_layers
        if config.is_encoder_decoder:
            layers = f"{config.encoder_layers} + {config.decoder_layers}"
        return f"random weights, {layers} x {config.hidden_size}"
    source = options.get("encoder") or options.get("solver")
    layers = options.get("encoder_layers")
    before = _stage_at(stage, source)
    if before is None:
        name = str(shorten_paths(source))
    else:
        name = f"{_encoder(before)}, after stage {before.name}"
    if layers is not None:
        name += f", layers {layers}"
    return name


def describe_training_size(stages: Iterable[Stage]) -> str:
    """Describe how many problems the stages learn from."""
    by_size: dict[str, list[str]] = {}
    for stage in stages:
        if stage.command in ("train", "distill"):
            limit = stage.options.get("max_train_samples")
            extra = as_list(stage.options.get("extra_train"))
            num_problems = f"{limit:,}" if limit else "all"
            size = " and those of ".join([num_problems, *map(str, shorten_paths(extra))])
            names = by_size.setdefault(size, [])
            if stage.name not in names:
                names.append(stage.name)
    if len(by_size) < 2:
        return f"{next(iter(by_size), 'all')} training problems"
    descriptions = [f"{size} ({', '.join(names)})" for size, names in by_size.items()]
    return f"training problems: {'; '.join(descriptions)}"


def measure_shape(shape: Mapping[str, Any]) -> dict[str, int]:
    """
    Return the `parameters` of a BERT-shaped encoder and its floating point operations for one text (`flops`, see
    [`metrics.count_flops`]) from its shape alone: fields of [`MwpStudentConfig`], `tokens` (length of the text, 128 by
    default) and `pooling` (count the pooling layer of a BERT, `True` by default).
    """
    fields = dict(shape)
    tokens = fields.pop("tokens", 128)
    pooling = fields.pop("pooling", True)
    # The meta device computes nothing and takes no memory; the operations are the same.
    with torch.device("meta"):
        model = MwpStudentModel(MwpStudentConfig(**fields), add_pooling_layer=pooling).eval()
        inputs = {"input_ids": torch.ones(1, tokens, dtype=torch.long)}
    with torch.no_grad():
        flops = count_flops(model, inputs)
    return {"parameters": count_parameters(model), "flops": flops}
