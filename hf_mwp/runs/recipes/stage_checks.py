"""Whether what the options of a stage name is there, before the first stage is run."""

from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

from ...building.encoder import parse_layers
from ...building.model_sources import check_folder, check_tokenizer, is_path
from ...option_checks import as_list
from ...option_roles import Role
from ...tasks.pretraining_corpus import NO_TAGGER
from ...usage_error import UsageError
from ..stage_arguments import names_task, options_of, options_with
from .layers import made_layers, model_layers
from .stage import Stage
from .stage_fingerprint import SOURCES, is_made, locate_source


MODEL_CHECKS = {
    Role.ENCODER: check_folder,
    Role.SOLVER: partial(check_folder, solver=True),
    Role.TOKENIZER: check_tokenizer,
}


def check_stage_options(stage: Stage, values: Mapping[str, Any]) -> None:
    """
    Looks for the local models, data sets, files and taggers that a stage names and that no other stage makes, and
    whether the layers that it names are among those of its models, as far as that is known. `values` are its options
    with the defaults of its command; `UsageError` names the stage and the option.
    """
    inputs = [str(each.folder) for each in stage.inputs]
    has_task = names_task(stage.command, values)
    # A classifier is a model like any other; what its files are is checked when it is loaded.
    for role, check in (MODEL_CHECKS | ({Role.SOLVER: check_folder} if has_task else {})).items():
        for name in options_with(stage.command, role):
            for source in as_list(values.get(name)):
                if is_made(source, inputs):
                    continue
                try:
                    check(source)
                except UsageError as error:
                    raise _fault(stage, name, f"{error} Give a folder, a stage as ${{name}}, or a Hub id.") from None
    if not has_task:
        _check_data(stage, values, inputs)
    _check_layers(stage, values)


def _check_data(stage: Stage, values: Mapping[str, Any], inputs: list[str]) -> None:
    from ...data.corpus.pretraining_texts import read_texts
    from ...problems.tagging.pos_tagger import split_tagger

    for name in options_with(stage.command, SOURCES):
        for source in as_list(values.get(name)):
            try:
                place = locate_source(stage.command, name, source, values, inputs)
                if place is not None and options_of(stage.command)[name].role & Role.TEXTS:
                    # Nothing is read before it is asked for a text.
                    read_texts(source)
            except ValueError as error:
                raise _fault(stage, name, f"{error}.") from None
    for name in options_with(stage.command, Role.TAGGER):
        try:
            folder = "" if values[name] in (None, NO_TAGGER) else split_tagger(str(values[name]))[1]
        except ValueError as error:
            raise _fault(stage, name, f"{error}.") from None
        if not Path(folder).exists() and is_path(folder):
            raise _fault(stage, name, f"There is no folder {folder}.")


def _check_layers(stage: Stage, values: Mapping[str, Any]) -> None:
    ours = made_layers(stage)
    for name in options_with(stage.command, Role.AFTER):
        layers = parse_layers(values[name]) or []
        layers = [layers] if isinstance(layers, int) else layers
        if ours is not None and (len(set(layers)) < len(layers) or not all(1 <= layer <= ours for layer in layers)):
            given = ",".join(map(str, layers))
            fault = f"the encoder has {ours} layers: name different ones from 1 to {ours}, not {given}."
            raise _fault(stage, name, fault)
    compared = [values[name] for name in options_with(stage.command, Role.COMPARED)]
    for name in options_with(stage.command, Role.MAPPING) if {*compared} - {None, "none"} else ():
        from ...distillation.layer_mapping import map_layers

        theirs = model_layers(stage, as_list(stage.option(Role.TEACHER))[0])
        if ours is not None and theirs is not None:
            try:
                map_layers(values[name], ours, theirs)
            except ValueError as error:
                raise _fault(stage, name, str(error)) from None


def _fault(stage: Stage, option: str, fault: str) -> UsageError:
    return UsageError(f"stage {stage.name}: key {option!r}: {fault}")
