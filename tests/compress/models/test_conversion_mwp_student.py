import copy
import re

import pytest
import torch
from transformers import BertModel, GPT2Config, GPT2Model

from hf_mwp.compress.models.mwp_student import (
    MwpStudentForMaskedLM,
    MwpStudentForMultipleChoice,
    MwpStudentForPreTraining,
    MwpStudentForQuestionAnswering,
    MwpStudentForSequenceClassification,
    MwpStudentForTokenClassification,
    MwpStudentModel,
)
from tests.compress.models.tiny_student import VOCAB, assert_same_states, pruned_config, tiny_config
from tests.compress.pruning.encoders import CLASSES, first_output, head_batch, tiny_batch, tiny_encoder
from tests.slow_parameters import slow_after, slow_except


STUDENTS = {
    "Model": MwpStudentModel,
    "ForMaskedLM": MwpStudentForMaskedLM,
    "ForSequenceClassification": MwpStudentForSequenceClassification,
    "ForTokenClassification": MwpStudentForTokenClassification,
    "ForQuestionAnswering": MwpStudentForQuestionAnswering,
    "ForMultipleChoice": MwpStudentForMultipleChoice,
}


def assert_equal_outputs(model, source, inputs):
    assert torch.equal(first_output(model, inputs), first_output(source, inputs))


@pytest.mark.parametrize("is_padded", slow_after(1, [True, False]))
@pytest.mark.parametrize("implementation", slow_except(["eager", "sdpa"], "sdpa"))
@pytest.mark.parametrize("name", [name for name in CLASSES if name != "mwp_student"])
def test_student_has_the_outputs_of_its_source(name, implementation, is_padded):
    source = tiny_encoder(name, attn_implementation=implementation)
    student = MwpStudentModel.from_encoder(source)
    assert student.config._attn_implementation == implementation
    counts_as_roberta = "roberta" in name or name == "camembert"
    assert student.config.position_offset == (source.config.pad_token_id + 1 if counts_as_roberta else 0)
    inputs = tiny_batch(source)
    if not is_padded:
        inputs = {"input_ids": inputs["input_ids"][:1]}
    expected = source(**inputs, output_hidden_states=True)
    outputs = student(**inputs, output_hidden_states=True)
    assert_same_states(outputs, expected)
    if hasattr(source, "pooler"):
        assert torch.equal(outputs.pooler_output, expected.pooler_output)
    else:
        assert student.pooler is None


def test_token_types_and_positions():
    source = tiny_encoder("bert")
    inputs = tiny_batch(source)
    inputs["token_type_ids"] = (torch.arange(9) > 4).long().expand(3, 9)
    inputs["position_ids"] = torch.arange(9).flip(0).unsqueeze(0)
    assert_equal_outputs(MwpStudentModel.from_encoder(source), source, inputs)


@pytest.mark.parametrize("name", ["bert", "narrow electra", "roberta"])
def test_embeddings_instead_of_tokens(name):
    source = tiny_encoder(name)
    inputs_embeds = source.get_input_embeddings()(tiny_batch(source)["input_ids"])
    assert_equal_outputs(MwpStudentModel.from_encoder(source), source, {"inputs_embeds": inputs_embeds})


def test_source_is_copied():
    source = tiny_encoder("bert")
    before = copy.deepcopy(source.state_dict())
    student = MwpStudentModel.from_encoder(source)
    with torch.no_grad():
        for parameter in student.parameters():
            parameter.add_(1.0)
    torch.testing.assert_close(source.state_dict(), before, rtol=0, atol=0)


@pytest.mark.parametrize(("layers", "indices"), [(2, [0, 1]), ([2, 0], [2, 0]), (range(1, 3), [1, 2])])
def test_chosen_layers_are_copied(layers, indices):
    source = tiny_encoder("bert")
    student = MwpStudentModel.from_encoder(source, layers=layers)
    assert student.config.num_hidden_layers == len(indices)
    for layer, index in zip(student.encoder.layer, indices, strict=True):
        torch.testing.assert_close(layer.state_dict(), source.encoder.layer[index].state_dict(), rtol=0, atol=0)


@pytest.mark.parametrize("layers", [0, 4, -1, [], [3], [-1], ["0"]])
def test_layers_that_do_not_exist_raise(layers):
    with pytest.raises(ValueError, match=rf"{re.escape(f'layers={layers}')}.* 3 layers"):
        MwpStudentModel.from_encoder(tiny_encoder("bert"), layers=layers)


@pytest.mark.parametrize(
    "model",
    [
        GPT2Model(GPT2Config(vocab_size=VOCAB, n_embd=8, n_layer=1, n_head=1)),
        torch.nn.Linear(2, 2),
        tiny_encoder("bert", is_decoder=True),
    ],
    ids=lambda model: type(model).__name__,
)
def test_other_models_raise(model):
    with pytest.raises(ValueError, match=f"{type(model).__name__}.*bert, roberta"):
        MwpStudentModel.from_encoder(model)


def test_sizes_cannot_be_changed_and_other_fields_can():
    source = tiny_encoder("bert")
    with pytest.raises(ValueError, match="hidden_size"):
        MwpStudentModel.from_encoder(source, hidden_size=12)
    student = MwpStudentModel.from_encoder(source, hidden_dropout_prob=0.3, num_labels=7)
    assert student.embeddings.dropout.p == 0.3
    assert student.config.num_labels == 7


def test_pooler_is_added_or_left_out():
    with_pooler = tiny_encoder("bert")
    without_pooler = BertModel(with_pooler.config, add_pooling_layer=False)
    assert MwpStudentModel.from_encoder(without_pooler).pooler is None
    assert MwpStudentModel.from_encoder(with_pooler, add_pooling_layer=False).pooler is None
    assert MwpStudentModel.from_encoder(without_pooler, add_pooling_layer=True).pooler is not None


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_dtype_and_mode_are_those_of_the_source(dtype):
    source = tiny_encoder("bert").to(dtype)
    student = MwpStudentModel.from_encoder(source)
    assert student.dtype == dtype and not student.training
    assert_equal_outputs(student, source, tiny_batch(source))
    assert MwpStudentModel.from_encoder(source.train()).training


def test_student_of_a_pruned_student():
    source = MwpStudentForPreTraining(pruned_config()).eval()
    student = MwpStudentModel.from_encoder(source)
    inputs = tiny_batch(source)
    expected = source.mwp_student(**inputs, output_hidden_states=True)
    assert_same_states(student(**inputs, output_hidden_states=True), expected)
    smaller = MwpStudentModel.from_encoder(source, layers=[2, 1])
    assert smaller.config.heads_per_layer == [0, 1]
    assert smaller.config.neurons_per_layer == [20, 7]
    last = MwpStudentModel.from_encoder(source, layers=[2])
    assert last.config.num_attention_heads == 0 and last.config.head_dim == 6


def shrink(linear, num_outputs):
    linear.weight.data = linear.weight[:num_outputs].clone()
    linear.bias.data = linear.bias[:num_outputs].clone()
    linear.out_features = num_outputs


def test_student_of_a_bert_that_was_cut_in_place():
    source = tiny_encoder("bert")
    for layer, heads, neurons in zip(source.encoder.layer, (4, 1, 0), (20, 5, 0), strict=True):
        attention = layer.attention
        for linear in (attention.self.query, attention.self.key, attention.self.value):
            shrink(linear, 6 * heads)
        shrink(layer.intermediate.dense, neurons)
        attention.output.dense.weight.data = attention.output.dense.weight[:, : 6 * heads].clone()
        layer.output.dense.weight.data = layer.output.dense.weight[:, :neurons].clone()
    student = MwpStudentModel.from_encoder(source)
    assert student.config.heads_per_layer == [4, 1, 0]
    assert student.config.neurons_per_layer == [20, 5, 0]
    assert student.config.head_dim == 6
    inputs = tiny_batch(source)
    torch.testing.assert_close(first_output(student, inputs), first_output(source, inputs))


@pytest.mark.parametrize("name", slow_except(["bert", "roberta", "electra", "distilbert"], "distilbert"))
@pytest.mark.parametrize(
    ("head", "student_class"),
    [
        ("ForMaskedLM", MwpStudentForMaskedLM),
        ("ForMaskedLM", MwpStudentForPreTraining),
        ("ForSequenceClassification", MwpStudentForSequenceClassification),
        ("ForTokenClassification", MwpStudentForTokenClassification),
        ("ForQuestionAnswering", MwpStudentForQuestionAnswering),
        ("ForMultipleChoice", MwpStudentForMultipleChoice),
    ],
)
def test_heads_are_copied(name, head, student_class):
    source = tiny_encoder(name, head)
    student = student_class.from_encoder(source, num_pos_tags=5)
    assert student.config.num_labels == source.config.num_labels
    inputs = head_batch(source, head)
    outputs = student(**inputs)
    for output, values in source(**inputs).items():
        assert torch.equal(outputs[output], values)


def test_head_of_another_task_is_not_copied():
    source = tiny_encoder("bert", "ForTokenClassification")
    student = MwpStudentForSequenceClassification.from_encoder(source)
    assert student.classifier.weight.shape == source.classifier.weight.shape
    assert not torch.equal(student.classifier.weight, source.classifier.weight)


def test_heads_of_another_shape_are_new():
    source = tiny_encoder("bert", "ForSequenceClassification")
    student = MwpStudentForSequenceClassification.from_encoder(source, num_labels=4)
    assert student.classifier.out_features == 4
    assert torch.equal(student.mwp_student.pooler.dense.weight, source.bert.pooler.dense.weight)


@pytest.mark.parametrize("head", slow_except(STUDENTS, "Model", "ForMaskedLM"))
def test_projection_of_narrow_embeddings_is_copied_and_saved(head, tmp_path):
    student_class = STUDENTS[head]
    source = tiny_encoder("narrow electra", head)
    student = student_class.from_encoder(source)
    assert student.config.embedding_size == 8 and student.config.hidden_size == 24
    inputs = head_batch(source, head)
    expected = source(**inputs, output_hidden_states=True)
    student.save_pretrained(tmp_path)
    for model in (student, student_class.from_pretrained(tmp_path), student_class.from_encoder(student)):
        outputs = model(**inputs, output_hidden_states=True)
        torch.testing.assert_close(outputs[0], expected[0], rtol=0, atol=1e-6)
        assert torch.equal(outputs.hidden_states[0], expected.hidden_states[0])
    one_layer = student_class.from_encoder(student, layers=[1])
    assert one_layer.config.embedding_size == 8 and one_layer.config.num_hidden_layers == 1
    with pytest.raises(ValueError, match="embedding_size"):
        student_class.from_encoder(source, embedding_size=24)


def test_pos_labels_are_copied_unless_others_are_passed():
    source = MwpStudentForPreTraining(tiny_config(num_pos_tags=0, pos_labels=["B-n", "I-n"], pos_tagger="jieba"))
    student = MwpStudentForPreTraining.from_encoder(source)
    assert student.config.pos_labels == ["B-n", "I-n"] and student.config.pos_tagger == "jieba"
    assert torch.equal(student.cls.pos_tagger.weight, source.cls.pos_tagger.weight)
    student = MwpStudentForPreTraining.from_encoder(source, pos_labels=["B-v", "I-v", "B-x"])
    assert student.config.num_pos_tags == 3 and student.config.pos_tagger is None
