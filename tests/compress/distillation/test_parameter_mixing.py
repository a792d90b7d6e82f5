import copy

import pytest
import torch
from torch import nn
from transformers import BertModel

from hf_mwp.compress.distillation import average_parameters, mix_parameters
from hf_mwp.compress.models import MwpStudentForMaskedLM, MwpStudentForPreTraining
from tests.compress.trainers.distilling import copy_of, same_weights, unchanged
from tests.tiny import tiny_bert_config, tiny_classifier, tiny_masked_lm, tiny_processor, tiny_solver


@pytest.fixture(scope="module")
def processor():
    return tiny_processor(indexed_numbers=True)


def module_of(**weights):
    """A module whose state is these tensors."""
    module = nn.Module()
    for name, value in weights.items():
        module.register_buffer(name, value)
    return module


def assert_mixed(mixed, pretrained, distilled):
    """Whether a module has 0.2 of the weights of one module and 0.8 of another's."""
    pretrained_weights = pretrained.state_dict()
    distilled_weights = distilled.state_dict()
    for name, value in mixed.state_dict().items():
        torch.testing.assert_close(value, 0.2 * pretrained_weights[name] + 0.8 * distilled_weights[name])


def test_value_worked_out_by_hand():
    pretrained = module_of(w=torch.tensor([1.0, -2.0]), steps=torch.tensor(3))
    distilled = module_of(w=torch.tensor([2.0, 8.0]), steps=torch.tensor(7))
    mixed = mix_parameters(pretrained, distilled)
    # 0.2 * 1 + 0.8 * 2 and 0.2 * -2 + 0.8 * 8
    assert mixed.w.tolist() == pytest.approx([1.8, 6.0])
    # Of counts, the larger one.
    assert mixed.steps.item() == 7
    assert mix_parameters(distilled, pretrained).steps.item() == 7
    assert distilled.w.tolist() == [2.0, 8.0]
    assert mix_parameters(pretrained, distilled, 0.5, inplace=True) is distilled
    assert distilled.w.tolist() == [1.5, 3.0]


def test_weights_0_and_1_are_exact(processor):
    first = tiny_solver(processor)
    second = tiny_solver(processor, seed=1)
    assert same_weights(mix_parameters(first, second, 0.0), second)
    assert same_weights(mix_parameters(first, second, 1.0), first)


@pytest.mark.parametrize("pretrained_class", [MwpStudentForPreTraining, MwpStudentForMaskedLM])
def test_a_solvers_encoder_is_mixed_with_a_pretrained_one(processor, pretrained_class):
    solver = tiny_solver(processor)
    config = copy.deepcopy(solver.encoder.config)
    config.num_pos_tags = 4
    torch.manual_seed(3)
    pretrained = pretrained_class(config)
    mixed = mix_parameters(pretrained, solver)
    assert_mixed(mixed.encoder, pretrained.base_model, solver.encoder)
    assert same_weights(mixed.decoder, solver.decoder)


def test_poolers_and_heads_need_no_partner():
    torch.manual_seed(1)
    bert = BertModel(tiny_bert_config())
    classifier = tiny_classifier()
    mixed = mix_parameters(bert, classifier)
    assert_mixed(mixed.bert, bert, classifier.bert)
    assert torch.equal(mixed.classifier.weight, classifier.classifier.weight)


def test_tied_weights_are_mixed_once():
    first = tiny_masked_lm()
    second = tiny_masked_lm(1)
    before = copy.deepcopy(second)
    mix_parameters(first, second, inplace=True)
    assert_mixed(second, first, before)
    assert second.cls.predictions.decoder.weight is second.bert.embeddings.word_embeddings.weight


def test_mixed_models_have_the_dtype_of_the_distilled_one(processor):
    first = tiny_solver(processor)
    second = tiny_solver(processor, seed=1).to(torch.bfloat16)
    mixed = mix_parameters(first, second)
    assert mixed.dtype == torch.bfloat16
    for name, value in mixed.state_dict().items():
        distilled = second.state_dict()[name].float()
        assert torch.equal(value, torch.lerp(distilled, first.state_dict()[name], 0.2).bfloat16())


def test_differences_are_named_and_nothing_is_changed(processor):
    plain = tiny_solver(tiny_processor())
    solver = tiny_solver(processor)
    before = copy_of(solver)
    with pytest.raises(ValueError, match=r"word_embeddings.weight is \(\d+, 16\) .*(?s:.*)resize_embeddings"):
        mix_parameters(plain.encoder, solver)
    with pytest.raises(ValueError, match="24"):
        mix_parameters(tiny_solver(processor, hidden_size=24), solver, inplace=True)
    assert unchanged(solver, before)
    with pytest.raises(ValueError, match="encoder.layer.2.*distilled"):
        mix_parameters(solver.encoder, tiny_solver(processor, layers=3))
    weights = {str(number): torch.ones(1) for number in range(47)}
    with pytest.raises(ValueError, match=r"\b35 more"):
        mix_parameters(module_of(), module_of(**weights))
    with pytest.raises(ValueError, match=r"`pretrained_weight`.* 1\.2"):
        mix_parameters(module_of(), module_of(), pretrained_weight=1.2)


def test_an_average_is_the_mean_of_each_parameter():
    modules = [module_of(a=torch.tensor([value, 8.0]), steps=torch.tensor(value)) for value in (1, 2, 6)]
    mean = average_parameters(modules)
    torch.testing.assert_close(mean.a, torch.tensor([3.0, 8.0]))
    # The largest count.
    assert mean.steps == 6
    assert modules[0].a.tolist() == [1.0, 8.0]
    assert modules[0].steps == 1
    assert torch.equal(average_parameters(modules[:1]).a, modules[0].a)
    with pytest.raises(ValueError, match="models"):
        average_parameters([])
