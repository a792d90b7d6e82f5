import pytest
import torch
from torch import nn
from transformers.modeling_outputs import BaseModelOutput

from hf_mwp.compress.distillation import FeatureProjections
from tests.tiny import tiny_classifier
from tests.tiny_seq2seq import tiny_seq2seq


def test_hidden_states_stay_the_students_own_while_it_trains():
    torch.manual_seed(0)
    student = tiny_classifier().train()
    maps = FeatureProjections(
        {"hidden_1": ("hidden_1", 16, 24), "hidden_2": ("hidden_2", 16, 16), "embedding": ("hidden_0", 16, 24)}
    )
    inputs = {"input_ids": torch.tensor([[5, 6, 7]]), "output_hidden_states": True}
    before = student(**inputs)
    maps.attach(student)
    output = student(**inputs)
    assert isinstance(output, type(before)) and len(output.hidden_states) == 3
    assert torch.equal(output.hidden_states[-1], before.hidden_states[-1])
    assert output.hidden_states[-1].shape[-1] == 16
    projected = maps.read(output)
    assert set(projected) == {"hidden_1", "embedding"}
    assert torch.equal(projected["hidden_1"], maps.module["hidden_1"](output.hidden_states[1]))
    # Distributed training takes an output apart and makes it anew of its fields.
    leaves, spec = torch.utils._pytree.tree_flatten(output)
    again = torch.utils._pytree.tree_unflatten(leaves, spec)
    assert torch.equal(maps.read(again)["embedding"], projected["embedding"])
    assert maps.read(student.eval()(**inputs)) == {}
    maps.detach()
    assert type(student.train()(**inputs)) is type(before) and maps.read(output) == {}


def test_outputs_that_are_plain_dictionaries():
    class Plain(nn.Module):
        def __init__(self):
            super().__init__()
            self.weight = nn.Parameter(torch.ones(1))

        def forward(self, x):
            return dict(BaseModelOutput(last_hidden_state=x, hidden_states=(x, self.weight * x)))

    maps = FeatureProjections({"hidden_1": ("hidden_1", 2, 3)})
    student = Plain()
    maps.attach(student)
    output = student(torch.ones(1, 1, 2))
    assert len(output["hidden_states"]) == 2 and maps.read(output)["hidden_1"].shape == (1, 1, 3)


def test_one_map_for_all_features():
    maps = FeatureProjections({"a": ("hidden_1", 16, 24), "b": ("hidden_2", 16, 24)}, shared=True)
    (linear,) = maps.module.values()
    assert linear.bias is not None
    output = tiny_classifier()(torch.tensor([[5, 6, 7]]), output_hidden_states=True)
    for name, layer in (("a", 1), ("b", 2)):
        assert torch.equal(maps.project(output)[name], linear(output.hidden_states[layer]))
    assert len(FeatureProjections({"a": ("hidden_1", 16, 16)}, shared=True)) == 1
    with pytest.raises(ValueError, match="same widths"):
        FeatureProjections({"a": ("hidden_1", 16, 24), "b": ("hidden_2", 8, 24)}, shared=True)


def test_decoder_states_have_maps_of_their_own():
    maps = FeatureProjections({"a": ("hidden_1", 16, 24), "b": ("decoder_hidden_1", 16, 24)})
    output = tiny_seq2seq()(torch.tensor([[5, 6]]), labels=torch.tensor([[7, 8]]), output_hidden_states=True)
    projected = maps.project(output)
    assert torch.equal(projected["a"], maps.module["a"](output.encoder_hidden_states[1]))
    assert torch.equal(projected["b"], maps.module["b"](output.decoder_hidden_states[1]))
