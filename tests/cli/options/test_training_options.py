from dataclasses import fields

import pytest

from hf_mwp.cli.commands.training import distill, pretrain, stark, train
from hf_mwp.option_roles import default_of
from hf_mwp.trainers import DistillationConfig, PreTrainingConfig, SolverConfig, StarkConfig


@pytest.mark.parametrize(
    ("command", "config"),
    [(train, SolverConfig), (distill, DistillationConfig), (pretrain, PreTrainingConfig), (stark, StarkConfig)],
)
def test_what_the_short_help_shows_is_so(command, config):
    """Each option stands in one of the command's dataclasses, with this default."""
    real = {field.name: field for kind in command.argument_types() for field in fields(kind)}
    assert config in command.argument_types()
    for kind in command.COMMON:
        for field in fields(kind):
            default = default_of(real[field.name])
            assert default_of(field) == getattr(default, "value", default), field.name
            choices = real[field.name].metadata.get("choices")
            assert choices is None or list(field.metadata["choices"]) == list(choices)
