"""What can be known to be wrong with a stage's models, data and layers before the first stage is run."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ...building.encoder import parse_layers
from ...building.model_sources import check_folder, check_tokenizer, is_path
from ...tasks.pretraining_corpus import NO_TAGGER
from ...usage_error import UsageError
from . import Stage
from .layers import made_layers, model_layers
from .stage_fingerprint import SOURCES, is_made, locate_source


# Options that name a model, and the type that it must have.
MODELS = {
    "encoder": None,
    "student_encoder": None,
    "pretrained": None,
    "teacher": "mwp_solver",
    "student": "mwp_solver",
    "solver": "mwp_solver",
    "distilled": "mwp_solver",
    "model": "mwp_solver",
}


def check_models(stage: Stage, values: Mapping[str, Any]) -> None:
    """
    Looks whether the local models that a stage names, and that no other stage makes, are there.

    Args:
        stage ([`Stage`]): The stage.
        values (`Mapping[str, Any]`): Its options with the defaults of its command.

    Raises:
        UsageError: names the stage and the option.
    """
    inputs = [str(each.folder) for each in stage.inputs]
    for name in (*MODELS, "tokenizer"):
        source = values.get(name)
        if source is None or is_made(source, inputs):
            continue
        try:
            check_tokenizer(source) if name == "tokenizer" else check_folder(source, MODELS[name])
        except UsageError as error:
            raise _fault(stage, name, f"{error} Give a folder, a stage as ${{name}}, or a Hub id.") from None


def check_data(stage: Stage, values: Mapping[str, Any]) -> None:
    """
    Looks whether the data sets, files and taggers that a stage names, and that no other stage makes, are there.
    Arguments and errors are those of [`check_models`].
    """
    from ...data.corpus.pretraining_texts import read_texts
    from ...problems.tagging.pos_tagger import split_tagger

    inputs = [str(each.folder) for each in stage.inputs]
    for name in SOURCES:
        sources = values.get(name) or ()
        for source in [sources] if isinstance(sources, str) else sources:
            try:
                place = locate_source(name, source, values, inputs)
                if place is not None and name in ("corpus", "exclude", "extra_exclude"):
                    # Nothing is read before it is asked for a text.
                    read_texts(source)
            except ValueError as error:
                raise _fault(stage, name, f"{error}.") from None
    tagger = values.get("tagger")
    if tagger not in (None, NO_TAGGER):
        try:
            _, folder = split_tagger(str(tagger))
        except ValueError as error:
            raise _fault(stage, "tagger", f"{error}.") from None
        if not Path(folder).exists() and is_path(folder):
            raise _fault(stage, "tagger", f"There is no folder {folder}.")


def check_layers(stage: Stage, values: Mapping[str, Any]) -> None:
    """
    Looks whether the layers that a stage names are among those that its models have, as far as that is known.
    Arguments and errors are those of [`check_models`].
    """
    ours, bottlenecks = made_layers(stage), parse_layers(values.get("bottleneck_layers"))
    if ours is not None and bottlenecks is not None:
        layers = [bottlenecks] if isinstance(bottlenecks, int) else bottlenecks
        if len(set(layers)) < len(layers) or not all(1 <= layer <= ours for layer in layers):
            given = ",".join(map(str, layers))
            fault = f"the encoder has {ours} layers: name different ones from 1 to {ours}, not {given}."
            raise _fault(stage, "bottleneck_layers", fault)
    if values.get("hidden_loss", "none") not in (None, "none"):
        from ...distillation.layer_mapping import map_layers

        theirs = model_layers(stage, values["teacher"])
        if ours is not None and theirs is not None:
            try:
                map_layers(values["layer_mapping"], ours, theirs)
            except ValueError as error:
                raise _fault(stage, "layer_mapping", str(error)) from None


def _fault(stage: Stage, option: str, fault: str) -> UsageError:
    return UsageError(f"stage {stage.name}: key {option!r}: {fault}")
