from types import SimpleNamespace

import pytest

from hf_mwp.recipes import Stage
from reproduce.descriptions import describe_teacher


@pytest.mark.parametrize(
    "shape", [{"num_hidden_layers": 4, "hidden_size": 64}, '{"num_hidden_layers": 4, "hidden_size": 64}']
)
def test_random_weights_are_told_by_their_shape(shape):
    stages = {"teacher": Stage("teacher", "train", {"encoder_config": shape, "dataset": "pears", "max_steps": 2})}
    told = describe_teacher(SimpleNamespace(stages=stages), "teacher", stages)
    assert told == "random weights, 4 x 64, pears, 2 steps"


def test_both_stacks_of_an_encoder_decoder_are_told():
    shape = {"model_type": "marian", "d_model": 256, "encoder_layers": 3, "decoder_layers": 2}
    stages = {"teacher": Stage("teacher", "train", {"encoder_config": shape, "dataset": "pears", "max_steps": 2})}
    told = describe_teacher(SimpleNamespace(stages=stages), "teacher", stages)
    assert told == "random weights, 3 + 2 x 256, pears, 2 steps"
