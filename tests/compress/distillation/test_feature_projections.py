import pytest
import torch
from torch import nn
from torch.utils import _pytree
from transformers.modeling_outputs import BaseModelOutput

from hf_mwp.compress.distillation import FeatureProjections
from tests.tiny import tiny_classifier


INPUTS = {"input_ids": torch.tensor([[5, 6, 7]]), "output_hidden_states": True}


def test_hidden_states_stay_the_students_own_while_it_trains():
    student = tiny_classifier().train()
    projections = FeatureProjections(
        {"hidden_1": ("hidden_1", 16, 24), "hidden_2": ("hidden_2", 16, 16), "embedding": ("hidden_0", 16, 24)}
    )
    before = student(**INPUTS)
    projections.attach(student)
    output = student(**INPUTS)
    assert isinstance(output, type(before))
    assert all(map(torch.equal, output.hidden_states, before.hidden_states))
    projected = projections.read(output)
    assert projected.keys() == {"hidden_1", "embedding"}
    assert torch.equal(projected["hidden_1"], projections.module["hidden_1"](output.hidden_states[1]))
    # Distributed training takes an output apart and makes it anew of its fields.
    leaves, spec = _pytree.tree_flatten(output)
    rebuilt = _pytree.tree_unflatten(leaves, spec)
    assert torch.equal(projections.read(rebuilt)["embedding"], projected["embedding"])
    assert projections.read(student.eval()(**INPUTS)) == {}
    projections.detach()
    assert type(student.train()(**INPUTS)) is type(before)
    assert projections.read(output) == {}


class DictionaryModel(nn.Module):
    """Returns a plain dictionary."""

    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(1))

    def forward(self, x):
        return dict(BaseModelOutput(last_hidden_state=x, hidden_states=(x, self.weight * x)))


def test_outputs_may_be_plain_dictionaries():
    projections = FeatureProjections({"hidden_1": ("hidden_1", 2, 3)})
    student = DictionaryModel()
    projections.attach(student)
    output = student(torch.ones(1, 1, 2))
    assert len(output["hidden_states"]) == 2
    assert projections.read(output)["hidden_1"].shape == (1, 1, 3)


def test_one_map_for_all_features():
    projections = FeatureProjections({"a": ("hidden_1", 16, 24), "b": ("hidden_2", 16, 24)}, shared=True)
    (linear,) = projections.module.values()
    assert linear.bias is not None
    output = tiny_classifier()(**INPUTS)
    projected = projections.project(output)
    assert torch.equal(projected["a"], linear(output.hidden_states[1]))
    assert torch.equal(projected["b"], linear(output.hidden_states[2]))
    assert len(FeatureProjections({"a": ("hidden_1", 16, 16)}, shared=True)) == 1
    with pytest.raises(ValueError, match="same widths"):
        FeatureProjections({"a": ("hidden_1", 16, 24), "b": ("hidden_2", 8, 24)}, shared=True)
