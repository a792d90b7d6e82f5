import pytest
import torch

from hf_mwp.commands.hub.model_card import has_identity_pooling
from hf_mwp.commands.hub.model_folder import with_pooling_layer
from hf_mwp.compress.models import MwpStudentModel
from tests.tiny import tiny_processor, tiny_solver


@pytest.fixture
def encoder():
    return tiny_solver(tiny_processor()).encoder.eval()


def test_encoder_without_pooling_layer_gets_the_identity(encoder):
    assert not has_identity_pooling(encoder)
    pooled = with_pooling_layer(encoder)
    assert has_identity_pooling(pooled)
    assert encoder.pooler is None
    output = pooled(torch.arange(3, 9).unsqueeze(0))
    assert torch.equal(output.pooler_output, output.last_hidden_state[:, 0].tanh())


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_pooling_layer_has_the_dtype_of_the_encoder(encoder, dtype):
    pooled = with_pooling_layer(encoder.to(dtype))
    assert {parameter.dtype for parameter in pooled.parameters()} == {dtype}
    assert has_identity_pooling(pooled)


def test_trained_pooling_layer_is_kept(encoder):
    trained = MwpStudentModel(encoder.config)
    assert with_pooling_layer(trained) is trained
    assert not has_identity_pooling(trained)
