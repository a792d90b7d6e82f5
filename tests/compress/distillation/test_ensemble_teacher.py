"""Several teachers as one: their mean by hand."""

import math

import pytest
import torch
from torch import nn
from transformers.utils import ModelOutput

from hf_mwp.compress.distillation import EnsembleTeacher
from hf_mwp.compress.distillation.ensemble_teacher import mean_scores, members_of
from tests.tiny import tiny_classifier


LEAST = torch.finfo(torch.float32).min


class ConstantTeacher(nn.Module):
    def __init__(self, **output):
        super().__init__()
        self.output = output

    def forward(self, **inputs):
        return ModelOutput(**self.output)


def logs(*probabilities):
    return torch.tensor([probabilities]).log()


def test_probabilities_are_averaged():
    mean = mean_scores([logs(0.8, 0.1, 0.1), logs(0.2, 0.7, 0.1) + 5])
    torch.testing.assert_close(mean.exp(), torch.tensor([[0.5, 0.4, 0.1]]))


def test_a_class_is_forbidden_if_all_teachers_forbid_it():
    first = torch.tensor([[0.0, 0.0, LEAST, LEAST]])
    second = torch.tensor([[math.log(3), LEAST, 0.0, LEAST]])
    mean = mean_scores([first, second])
    torch.testing.assert_close(mean.exp(), torch.tensor([[0.625, 0.25, 0.125, 0.0]]))
    assert mean[0, 3] == LEAST
    assert mean[0, :3].isfinite().all()
    all_forbidden = torch.full((1, 2), LEAST)
    assert torch.equal(mean_scores([all_forbidden, all_forbidden]), all_forbidden)


def test_scores_of_a_single_class_are_averaged():
    assert mean_scores([torch.tensor([[1.0]]), torch.tensor([[4.0]])]).tolist() == [[2.5]]


def test_labels_that_do_not_exclude_each_other_have_averaged_scores():
    fields = {"problem_type": "multi_label_classification", "initializer_range": 0.5}
    first = tiny_classifier(1, **fields).eval()
    second = tiny_classifier(2, **fields).eval()
    inputs = {"input_ids": torch.tensor([[5, 6, 7]])}
    with torch.no_grad():
        logits = EnsembleTeacher([first, second])(**inputs).logits
        expected = (first(**inputs).logits + second(**inputs).logits) / 2
    torch.testing.assert_close(logits, expected)


def test_all_outputs_but_predictions_are_the_first_teachers():
    members = [tiny_classifier(seed).eval() for seed in (0, 1)]
    inputs = {"input_ids": torch.tensor([[5, 6, 7]]), "labels": torch.tensor([1]), "output_hidden_states": True}
    with torch.no_grad():
        output = EnsembleTeacher(members)(**inputs)
        first, second = (member(**inputs) for member in members)
    expected = (first.logits.softmax(-1) + second.logits.softmax(-1)) / 2
    torch.testing.assert_close(output.logits.softmax(-1), expected)
    assert output.loss is None
    assert all(map(torch.equal, output.hidden_states, first.hidden_states))


def test_members_of_an_ensemble_and_of_a_model():
    model = tiny_classifier()
    assert members_of(model) == [model]
    assert members_of(EnsembleTeacher([model, model])) == [model, model]
    assert EnsembleTeacher([model]).get_encoder() is model.get_encoder()


def test_members_that_do_not_fit_are_named():
    two_classes = ConstantTeacher(logits=logs(0.5, 0.5))
    with pytest.raises(ValueError, match="one teacher"):
        EnsembleTeacher([])
    with pytest.raises(ValueError, match="Teacher 2 .*logits"):
        EnsembleTeacher([two_classes, ConstantTeacher(states=logs(0.5, 0.5))])()
    with pytest.raises(ValueError, match=r"\(1, 2\).*\(1, 3\)"):
        EnsembleTeacher([two_classes, ConstantTeacher(logits=logs(0.2, 0.4, 0.4))])()
