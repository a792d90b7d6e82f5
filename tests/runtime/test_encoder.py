import math

import numpy as np
import pytest
import torch
from transformers.activations import ACT2FN

from hf_mwp.compress.models import MwpStudentModel
from hf_mwp.runtime.encoder import ACTIVATIONS, Encoder, gelu
from hf_mwp.runtime.weights import Weights
from hf_mwp.solver.models import MwpSolver, MwpSolverConfig
from hf_mwp.utils.usage_error import UsageError
from tests.compress.models.tiny_student import VOCAB, pruned_config, tiny_config
from tests.tiny import tiny_processor, tiny_solver


ENCODERS = {
    "student": tiny_config(),
    "pruned": pruned_config(),
    "narrow embeddings": tiny_config(embedding_size=10),
    "positions of RoBERTa": tiny_config(position_offset=2, pad_token_id=1),
    "relu": tiny_config(hidden_act="relu"),
    "gelu_new": tiny_config(hidden_act="gelu_new"),
}


def runtime_encoder(folder, model):
    model.save_pretrained(folder)
    config = model.config
    layers = config.bottleneck_layers
    return Encoder(Weights(folder), config.encoder_config.to_dict(), layers)


def solver_of(config, **fields):
    torch.manual_seed(3)
    decoder = tiny_solver(tiny_processor()).config.decoder_config
    decoder.encoder_hidden_size = config.hidden_size
    model = MwpSolver(MwpSolverConfig(encoder_config=config, decoder_config=decoder, **fields))
    for parameter in model.encoder.parameters():
        # Biases and norms too differ from what they begin with.
        parameter.data += 0.1 * torch.randn_like(parameter)
    return model.eval()


@pytest.mark.parametrize("name", ENCODERS)
def test_states_are_those_of_the_model(tmp_path, name):
    model = solver_of(ENCODERS[name])
    encoder = runtime_encoder(tmp_path, model)
    for length in (1, 2, 17):
        ids = torch.randint(3, VOCAB, (1, length), generator=torch.Generator().manual_seed(length))
        with torch.no_grad():
            states = model.encode(ids).last_hidden_state[0]
        np.testing.assert_allclose(encoder(ids[0].numpy()), states, atol=2e-5)


def test_bottlenecks_stand_after_their_layers(tmp_path):
    model = solver_of(tiny_config(), bottleneck_layers=[1, 3], bottleneck_size=5)
    ids = torch.arange(4, 12)[None]
    with torch.no_grad():
        states = model.encode(ids).last_hidden_state[0]
    np.testing.assert_allclose(runtime_encoder(tmp_path, model)(ids[0].numpy()), states, atol=2e-5)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_precision_is_computed_in_float32(tmp_path, dtype):
    model = solver_of(tiny_config()).to(dtype)
    encoder = runtime_encoder(tmp_path, model)
    ids = torch.arange(4, 12)[None]
    with torch.no_grad():
        states = model.float().encode(ids).last_hidden_state[0]
    found = encoder(ids[0].numpy())
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, states, atol=2e-5)


def test_gelu_is_that_of_the_error_function():
    x = np.linspace(-8, 8, 4001, dtype=np.float32)
    exact = [value * 0.5 * (1 + math.erf(value / math.sqrt(2))) for value in x.tolist()]
    np.testing.assert_allclose(gelu(x), exact, atol=1e-6)


def test_other_encoders_and_activations_are_refused(tmp_path):
    config = {"model_type": "bert"}
    with pytest.raises(UsageError, match="bert"):
        Encoder(None, config)
    with pytest.raises(UsageError, match="mish"):
        Encoder(None, {"model_type": "mwp_student", "hidden_act": "mish"})


@pytest.mark.parametrize("activation", ["relu", "gelu_new", "silu"])
def test_activations_are_those_of_pytorch(activation):
    x = np.linspace(-100, 100, 4001, dtype=np.float32)
    found = ACTIVATIONS[activation](x)
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, ACT2FN[activation](torch.from_numpy(x)), rtol=1e-6, atol=1e-6)


def test_the_pooler_is_not_needed():
    assert MwpStudentModel(tiny_config()).pooler is not None
