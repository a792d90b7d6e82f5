"""Several teachers as one: their mean by hand."""

import math

import pytest
import torch
from torch import nn
from transformers.utils import ModelOutput

from hf_mwp.compress.distillation import EnsembleTeacher
from hf_mwp.compress.distillation.ensemble_teacher import mean_scores, members_of
from hf_mwp.compress.losses import LogitDistillationLoss
from tests.tiny import tiny_classifier


LEAST = torch.finfo(torch.float32).min


class Saying(nn.Module):
    """A teacher that says the same whatever it is asked."""

    def __init__(self, **output):
        super().__init__()
        self.output = output

    def forward(self, **inputs):
        return ModelOutput(**self.output)


def logs(*probabilities):
    return torch.tensor([probabilities]).log()


def test_the_mean_of_probabilities():
    mean = mean_scores([logs(0.8, 0.1, 0.1), logs(0.2, 0.7, 0.1) + 5])
    torch.testing.assert_close(mean.exp(), torch.tensor([[0.5, 0.4, 0.1]]))


def test_a_class_is_forbidden_where_all_forbid_it():
    ours = torch.tensor([[0.0, 0.0, LEAST, LEAST]])
    theirs = torch.tensor([[math.log(3), LEAST, 0.0, LEAST]])
    mean = mean_scores([ours, theirs])
    torch.testing.assert_close(mean.exp(), torch.tensor([[0.625, 0.25, 0.125, 0.0]]))
    assert mean[0, 3] == LEAST and mean[0, :3].isfinite().all()
    assert torch.equal(mean_scores([torch.full((1, 2), LEAST)] * 2), torch.full((1, 2), LEAST))


def test_a_temperature_softens_the_mean():
    mean = mean_scores([logs(0.9, 0.1), logs(0.7, 0.3)])
    # Of 0.8 and 0.2 the roots are 2 : 1.
    student = logs(0.5, 0.5)
    expected = 2 / 3 * math.log(2 / 3 / 0.5) + 1 / 3 * math.log(1 / 3 / 0.5)
    loss = LogitDistillationLoss(temperature=2.0, scale_by_square=False)(student, mean)
    assert loss.item() == pytest.approx(expected, rel=1e-5)


def test_scores_of_a_single_class_are_averaged():
    assert mean_scores([torch.tensor([[1.0]]), torch.tensor([[4.0]])]).tolist() == [[2.5]]


def test_all_but_predictions_is_the_firsts():
    members = [tiny_classifier(seed=seed).eval() for seed in (0, 1)]
    inputs = {"input_ids": torch.tensor([[5, 6, 7]]), "labels": torch.tensor([1])}
    with torch.no_grad():
        output = EnsembleTeacher(members)(**inputs, output_hidden_states=True)
        first, second = (member(**inputs, output_hidden_states=True) for member in members)
    expected = (first.logits.softmax(-1) + second.logits.softmax(-1)) / 2
    torch.testing.assert_close(output.logits.softmax(-1), expected)
    assert output.loss is None
    for ours, theirs in zip(output.hidden_states, first.hidden_states, strict=True):
        assert torch.equal(ours, theirs)


def test_members():
    model = tiny_classifier()
    assert members_of(model) == [model] and members_of(EnsembleTeacher([model, model])) == [model, model]
    assert EnsembleTeacher([model]).get_encoder() is model.get_encoder()


def test_bad_members():
    with pytest.raises(ValueError, match="one teacher"):
        EnsembleTeacher([])
    with pytest.raises(ValueError, match="Teacher 2 .*logits"):
        EnsembleTeacher([Saying(logits=logs(0.5, 0.5)), Saying(states=logs(0.5, 0.5))])()
    with pytest.raises(ValueError, match=r"\(1, 2\).*\(1, 3\)"):
        EnsembleTeacher([Saying(logits=logs(0.5, 0.5)), Saying(logits=logs(0.2, 0.4, 0.4))])()
