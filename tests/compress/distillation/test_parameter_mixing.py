import copy

import pytest
import torch
from torch import nn
from transformers import BertModel

import hf_mwp
from hf_mwp.compress.distillation import average_parameters, mix_parameters
from hf_mwp.compress.models import MwpStudentForMaskedLM, MwpStudentForPreTraining
from hf_mwp.solver.models import MwpSolver
from tests.tiny import tiny_bert_config, tiny_classifier, tiny_masked_lm, tiny_processor, tiny_solver


@pytest.fixture(scope="module")
def processor():
    return tiny_processor(indexed_numbers=True)


def model(**weights):
    """A module whose state is these tensors."""
    module = nn.Module()
    for name, value in weights.items():
        module.register_buffer(name, value)
    return module


def test_value_worked_out_by_hand():
    pretrained = model(w=torch.tensor([1.0, -2.0]), steps=torch.tensor(3))
    distilled = model(w=torch.tensor([2.0, 8.0]), steps=torch.tensor(7))
    mixed = mix_parameters(pretrained, distilled)
    # 0.2 * 1 + 0.8 * 2 and 0.2 * -2 + 0.8 * 8
    assert mixed.w.tolist() == pytest.approx([1.8, 6.0]) and mixed.steps.item() == 7
    assert mix_parameters(distilled, pretrained).steps.item() == 7, "the larger count"
    assert distilled.w.tolist() == [2.0, 8.0]
    assert mix_parameters(pretrained, distilled, 0.5, inplace=True).w.tolist() == [1.5, 3.0]
    assert distilled.w.tolist() == [1.5, 3.0]


def test_the_ends_are_exact(processor):
    first = tiny_solver(processor)
    second = tiny_solver(processor, seed=1)
    for pretrained_weight, expected in ((0.0, second), (1.0, first)):
        mixed = mix_parameters(first, second, pretrained_weight).state_dict()
        assert all(torch.equal(mixed[name], value) for name, value in expected.state_dict().items())


def test_models_of_one_class_are_mixed_whole(processor):
    first = tiny_solver(processor)
    second = tiny_solver(processor, seed=1)
    before = {name: value.clone() for name, value in second.state_dict().items()}
    mixed = mix_parameters(first, second)
    for name, value in mixed.state_dict().items():
        torch.testing.assert_close(value, 0.2 * first.state_dict()[name] + 0.8 * before[name])
        assert torch.equal(second.state_dict()[name], before[name])
    assert mix_parameters(first, second, inplace=True) is second
    assert all(torch.equal(mixed.state_dict()[name], value) for name, value in second.state_dict().items())


@pytest.mark.parametrize("heads", [MwpStudentForPreTraining, MwpStudentForMaskedLM])
def test_a_solvers_encoder_with_a_pretrained_one(processor, heads, tmp_path):
    solver = tiny_solver(processor)
    assert solver.config.vocab_size == len(processor.tokenizer)
    config = copy.deepcopy(solver.encoder.config)
    config.num_pos_tags = 4
    torch.manual_seed(3)
    heads(config).save_pretrained(tmp_path)
    pretrained = heads.from_pretrained(tmp_path)
    mixed = mix_parameters(pretrained, solver)
    assert isinstance(mixed, MwpSolver)
    before = pretrained.base_model.state_dict()
    for name, value in solver.encoder.state_dict().items():
        torch.testing.assert_close(mixed.encoder.state_dict()[name], 0.2 * before[name] + 0.8 * value)
    for name, value in solver.decoder.state_dict().items():
        assert torch.equal(mixed.decoder.state_dict()[name], value)


def test_poolers_and_heads_need_no_partner():
    torch.manual_seed(1)
    bert = BertModel(tiny_bert_config())
    classifier = tiny_classifier()
    mixed = mix_parameters(bert, classifier)
    torch.testing.assert_close(
        mixed.bert.pooler.dense.weight, 0.2 * bert.pooler.dense.weight + 0.8 * classifier.bert.pooler.dense.weight
    )
    assert torch.equal(mixed.classifier.weight, classifier.classifier.weight)
    lm = tiny_masked_lm()
    words = 0.2 * bert.embeddings.word_embeddings.weight + 0.8 * lm.bert.embeddings.word_embeddings.weight
    mixed = mix_parameters(bert, lm)
    torch.testing.assert_close(mixed.bert.embeddings.word_embeddings.weight, words)
    assert mixed.cls.predictions.decoder.weight is mixed.bert.embeddings.word_embeddings.weight


def test_tied_weights_are_mixed_once():
    first = tiny_masked_lm()
    second = tiny_masked_lm(1)
    words = 0.2 * first.bert.embeddings.word_embeddings.weight + 0.8 * second.bert.embeddings.word_embeddings.weight
    mix_parameters(first, second, inplace=True)
    torch.testing.assert_close(second.bert.embeddings.word_embeddings.weight, words)


def test_dtypes_are_the_distilled_models(processor):
    first = tiny_solver(processor)
    second = tiny_solver(processor, seed=1).to(torch.bfloat16)
    mixed = mix_parameters(first, second)
    assert mixed.dtype == torch.bfloat16
    for name, value in mixed.state_dict().items():
        expected = 0.2 * first.state_dict()[name] + 0.8 * second.state_dict()[name].float()
        assert torch.equal(
            value, torch.lerp(second.state_dict()[name].float(), first.state_dict()[name], 0.2).bfloat16()
        )
        torch.testing.assert_close(value.float(), expected, rtol=1e-2, atol=1e-2)


def test_what_differs_is_listed(processor):
    plain = tiny_solver(tiny_processor())
    grown = tiny_solver(processor)
    with pytest.raises(ValueError, match=r"word_embeddings.weight is \(\d+, 16\) .*(?s:.*)resize_embeddings"):
        mix_parameters(plain.encoder, grown)
    with pytest.raises(ValueError, match="encoder.layer.2.*distilled"):
        mix_parameters(tiny_solver(processor).encoder, tiny_solver(processor, layers=3))
    with pytest.raises(ValueError, match=r"\b35 more"):
        mix_parameters(model(), model(**{str(number): torch.ones(1) for number in range(47)}))
    with pytest.raises(ValueError, match=r"`pretrained_weight`.* 1\.2"):
        mix_parameters(model(), model(), pretrained_weight=1.2)


def test_nothing_is_changed_where_models_do_not_fit(processor):
    first = tiny_solver(processor, hidden_size=24)
    second = tiny_solver(processor)
    before = {name: value.clone() for name, value in second.state_dict().items()}
    with pytest.raises(ValueError, match="24"):
        mix_parameters(first, second, inplace=True)
    assert all(torch.equal(value, before[name]) for name, value in second.state_dict().items())


def test_resized_embeddings_fit(processor):
    plain = tiny_solver(tiny_processor()).encoder
    processor.resize_embeddings(plain)
    assert hf_mwp.mix_parameters(plain, tiny_solver(processor)).config.vocab_size == len(processor.tokenizer)


def test_an_average_is_the_mean_of_each_parameter():
    models = [model(a=torch.tensor([value, 8.0]), count=torch.tensor(value, dtype=torch.long)) for value in (1, 2, 6)]
    mean = average_parameters(models)
    torch.testing.assert_close(mean.a, torch.tensor([3.0, 8.0]))
    assert mean.count == 6  # the largest
    assert torch.equal(models[0].a, torch.tensor([1.0, 8.0])) and models[0].count == 1, "the first is not changed"
    assert torch.equal(average_parameters(models[:1]).a, models[0].a)
    with pytest.raises(ValueError, match="models"):
        average_parameters([])
