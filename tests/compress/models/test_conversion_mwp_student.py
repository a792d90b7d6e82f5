import copy
import re

import pytest
import torch
from transformers import (
    BertConfig,
    BertForMaskedLM,
    BertForSequenceClassification,
    BertModel,
    CamembertConfig,
    CamembertModel,
    DistilBertConfig,
    DistilBertForMaskedLM,
    DistilBertForSequenceClassification,
    DistilBertModel,
    ElectraConfig,
    ElectraForMaskedLM,
    ElectraForSequenceClassification,
    ElectraModel,
    GPT2Config,
    GPT2Model,
    RobertaConfig,
    RobertaForMaskedLM,
    RobertaForSequenceClassification,
    RobertaModel,
    XLMRobertaConfig,
    XLMRobertaModel,
)

from hf_mwp.compress.models.mwp_student import (
    MwpStudentForMaskedLM,
    MwpStudentForPreTraining,
    MwpStudentForSequenceClassification,
    MwpStudentModel,
)
from tests.compress.models.tiny_student import VOCAB, assert_same_outputs, pruned_config, tiny_batch, tiny_config


SOURCES = [
    (BertConfig, BertModel),
    (RobertaConfig, RobertaModel),
    (XLMRobertaConfig, XLMRobertaModel),
    (CamembertConfig, CamembertModel),
    (ElectraConfig, ElectraModel),
    (DistilBertConfig, DistilBertModel),
]


def tiny_source(config_class, model_class, **fields):
    torch.manual_seed(0)
    sizes = tiny_config().to_dict()
    names = ("vocab_size", "hidden_size", "num_hidden_layers", "num_attention_heads", "intermediate_size")
    kwargs = {name: sizes[name] for name in (*names, "max_position_embeddings", "initializer_range")}
    if config_class is ElectraConfig:
        # As in its base and large sizes; the small one projects narrow embeddings.
        kwargs["embedding_size"] = kwargs["hidden_size"]
    if config_class is DistilBertConfig:
        kwargs["hidden_dim"] = kwargs.pop("intermediate_size")
    return model_class(config_class(**{**kwargs, **fields})).eval()


@pytest.mark.parametrize("padded", [True, False])
@pytest.mark.parametrize("implementation", ["eager", "sdpa"])
@pytest.mark.parametrize(("config_class", "model_class"), SOURCES)
def test_from_encoder_gives_the_outputs_of_the_source(config_class, model_class, implementation, padded):
    source = tiny_source(config_class, model_class, attn_implementation=implementation)
    student = MwpStudentModel.from_encoder(source)
    assert student.config._attn_implementation == implementation
    counts_as_roberta = model_class in (RobertaModel, XLMRobertaModel, CamembertModel)
    assert student.config.position_offset == (source.config.pad_token_id + 1 if counts_as_roberta else 0)
    inputs = tiny_batch(source.config.pad_token_id)
    if not padded:
        inputs = {"input_ids": inputs["input_ids"][:1]}
    expected = source(**inputs, output_hidden_states=True)
    outputs = student(**inputs, output_hidden_states=True)
    assert_same_outputs(outputs, expected)
    if hasattr(source, "pooler"):
        assert torch.equal(outputs.pooler_output, expected.pooler_output)
    else:
        assert student.pooler is None


def test_from_encoder_with_token_types_positions_and_embeddings():
    source = tiny_source(BertConfig, BertModel)
    student = MwpStudentModel.from_encoder(source)
    inputs = tiny_batch()
    inputs["token_type_ids"] = (torch.arange(9) > 4).long().expand(3, 9)
    inputs["position_ids"] = torch.arange(9).flip(0).unsqueeze(0)
    assert torch.equal(student(**inputs).last_hidden_state, source(**inputs).last_hidden_state)
    inputs["inputs_embeds"] = source.get_input_embeddings()(inputs.pop("input_ids"))
    assert torch.equal(student(**inputs).last_hidden_state, source(**inputs).last_hidden_state)


def test_narrow_embeddings_instead_of_tokens():
    source = tiny_source(ElectraConfig, ElectraModel, embedding_size=8)
    inputs = tiny_batch()
    expected = source(**inputs).last_hidden_state
    inputs["inputs_embeds"] = source.get_input_embeddings()(inputs.pop("input_ids"))
    assert torch.equal(MwpStudentModel.from_encoder(source)(**inputs).last_hidden_state, expected)


def test_roberta_positions_with_embeddings_count_every_place():
    source = tiny_source(RobertaConfig, RobertaModel)
    student = MwpStudentModel.from_encoder(source)
    inputs_embeds = torch.randn(2, 5, 24)
    expected = source(inputs_embeds=inputs_embeds).last_hidden_state
    assert torch.equal(student(inputs_embeds=inputs_embeds).last_hidden_state, expected)


def test_from_encoder_copies_and_leaves_the_source_alone():
    source = tiny_source(BertConfig, BertModel)
    before = copy.deepcopy(source.state_dict())
    student = MwpStudentModel.from_encoder(source)
    with torch.no_grad():
        for parameter in student.parameters():
            parameter.add_(1.0)
    assert all(torch.equal(value, before[name]) for name, value in source.state_dict().items())


@pytest.mark.parametrize(
    ("layers", "indices"), [(None, [0, 1, 2]), (2, [0, 1]), ([2, 0], [2, 0]), (range(1, 3), [1, 2])]
)
def test_from_encoder_takes_the_layers_asked_for(layers, indices):
    source = tiny_source(BertConfig, BertModel)
    student = MwpStudentModel.from_encoder(source, layers=layers)
    assert student.config.num_hidden_layers == len(indices)
    for layer, index in zip(student.encoder.layer, indices, strict=True):
        for name, value in source.encoder.layer[index].state_dict().items():
            assert torch.equal(layer.state_dict()[name], value)


@pytest.mark.parametrize("layers", [0, 4, -1, [], [3], [-1], ["0"]])
def test_from_encoder_refuses_layers_that_do_not_exist(layers):
    with pytest.raises(ValueError, match=rf"{re.escape(f'layers={layers}')}.* 3 layers"):
        MwpStudentModel.from_encoder(tiny_source(BertConfig, BertModel), layers=layers)


def test_from_encoder_refuses_other_models_and_sizes():
    gpt2 = GPT2Model(GPT2Config(vocab_size=VOCAB, n_embd=8, n_layer=1, n_head=1))
    with pytest.raises(ValueError, match="GPT2Model.*bert, roberta"):
        MwpStudentModel.from_encoder(gpt2)
    with pytest.raises(ValueError, match="Linear.*bert, roberta"):
        MwpStudentModel.from_encoder(torch.nn.Linear(2, 2))
    with pytest.raises(ValueError, match="BertModel.*bert, roberta"):
        MwpStudentModel.from_encoder(tiny_source(BertConfig, BertModel, is_decoder=True))
    with pytest.raises(ValueError, match="hidden_size"):
        MwpStudentModel.from_encoder(tiny_source(BertConfig, BertModel), hidden_size=12)


def test_from_encoder_changes_other_fields():
    student = MwpStudentModel.from_encoder(tiny_source(BertConfig, BertModel), hidden_dropout_prob=0.3, num_labels=7)
    assert student.config.hidden_dropout_prob == 0.3
    assert student.embeddings.dropout.p == 0.3
    assert student.config.num_labels == 7


def test_from_encoder_pooler():
    with_pooler = tiny_source(BertConfig, BertModel)
    without_pooler = BertModel(with_pooler.config, add_pooling_layer=False)
    assert MwpStudentModel.from_encoder(without_pooler).pooler is None
    assert MwpStudentModel.from_encoder(with_pooler, add_pooling_layer=False).pooler is None
    assert MwpStudentModel.from_encoder(without_pooler, add_pooling_layer=True).pooler is not None


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_from_encoder_keeps_dtype_and_mode(dtype):
    source = tiny_source(BertConfig, BertModel).to(dtype)
    student = MwpStudentModel.from_encoder(source)
    assert student.dtype == dtype
    assert not student.training
    assert MwpStudentModel.from_encoder(source.train()).training
    inputs = tiny_batch()
    assert torch.equal(student(**inputs).last_hidden_state, source.eval()(**inputs).last_hidden_state)


def test_from_encoder_of_a_student():
    source = MwpStudentForPreTraining(pruned_config()).eval()
    student = MwpStudentModel.from_encoder(source)
    inputs = tiny_batch()
    expected = source.mwp_student(**inputs, output_hidden_states=True)
    assert_same_outputs(student(**inputs, output_hidden_states=True), expected)
    part = MwpStudentModel.from_encoder(source, layers=[2, 1])
    assert part.config.heads_per_layer == [0, 1]
    assert part.config.neurons_per_layer == [20, 7]
    last = MwpStudentModel.from_encoder(source, layers=[2])
    assert (last.config.num_attention_heads, last.config.head_dim) == (0, 6)


def test_from_encoder_of_a_bert_cut_in_place():
    source = tiny_source(BertConfig, BertModel)
    for index, heads, neurons in [(0, 4, 20), (1, 1, 5), (2, 0, 0)]:
        attention = source.encoder.layer[index].attention
        layer = source.encoder.layer[index]
        for name in ("query", "key", "value"):
            linear = getattr(attention.self, name)
            linear.weight.data = linear.weight[: 6 * heads].clone()
            linear.bias.data = linear.bias[: 6 * heads].clone()
            linear.out_features = 6 * heads
        attention.output.dense.weight.data = attention.output.dense.weight[:, : 6 * heads].clone()
        dense = layer.intermediate.dense
        dense.weight.data = dense.weight[:neurons]
        dense.bias.data = dense.bias[:neurons]
        dense.out_features = neurons
        layer.output.dense.weight.data = layer.output.dense.weight[:, :neurons].clone()
        for linear in (attention.output.dense, layer.output.dense):
            linear.bias.data.normal_()
    student = MwpStudentModel.from_encoder(source)
    assert student.config.heads_per_layer == [4, 1, 0]
    assert student.config.neurons_per_layer == [20, 5, 0]
    assert student.config.head_dim == 6
    inputs = tiny_batch()
    torch.testing.assert_close(student(**inputs).last_hidden_state, source(**inputs).last_hidden_state)


@pytest.mark.parametrize(
    ("config_class", "model_class", "student_class"),
    [
        (BertConfig, BertForMaskedLM, MwpStudentForMaskedLM),
        (RobertaConfig, RobertaForMaskedLM, MwpStudentForMaskedLM),
        (BertConfig, BertForMaskedLM, MwpStudentForPreTraining),
        (BertConfig, BertForSequenceClassification, MwpStudentForSequenceClassification),
        (RobertaConfig, RobertaForSequenceClassification, MwpStudentForSequenceClassification),
        (ElectraConfig, ElectraForMaskedLM, MwpStudentForMaskedLM),
        (ElectraConfig, ElectraForSequenceClassification, MwpStudentForSequenceClassification),
        (DistilBertConfig, DistilBertForMaskedLM, MwpStudentForMaskedLM),
        (DistilBertConfig, DistilBertForSequenceClassification, MwpStudentForSequenceClassification),
    ],
)
def test_from_encoder_copies_heads(config_class, model_class, student_class):
    source = tiny_source(config_class, model_class, num_labels=3)
    student = student_class.from_encoder(source, num_pos_tags=5)
    assert student.config.num_labels == 3
    inputs = tiny_batch(source.config.pad_token_id)
    assert torch.equal(student(**inputs).logits, source(**inputs).logits)


def test_from_encoder_leaves_heads_of_another_shape_new():
    source = tiny_source(BertConfig, BertForSequenceClassification, num_labels=3)
    student = MwpStudentForSequenceClassification.from_encoder(source, num_labels=4)
    assert student.classifier.out_features == 4
    assert torch.equal(student.mwp_student.pooler.dense.weight, source.bert.pooler.dense.weight)


@pytest.mark.parametrize(
    ("model_class", "student_class"),
    [
        (ElectraModel, MwpStudentModel),
        (ElectraForMaskedLM, MwpStudentForMaskedLM),
        (ElectraForSequenceClassification, MwpStudentForSequenceClassification),
    ],
)
def test_the_projection_of_narrow_embeddings_is_part_of_the_student(model_class, student_class, tmp_path):
    source = tiny_source(ElectraConfig, model_class, embedding_size=8, num_labels=3)
    student = student_class.from_encoder(source)
    assert (student.config.embedding_size, student.config.hidden_size) == (8, 24)
    inputs = tiny_batch()
    expected = source(**inputs, output_hidden_states=True)
    student.save_pretrained(tmp_path)
    for each in (student, student_class.from_pretrained(tmp_path), student_class.from_encoder(student)):
        outputs = each(**inputs, output_hidden_states=True)
        assert torch.equal(outputs[0], expected[0])
        assert torch.equal(outputs.hidden_states[0], expected.hidden_states[0])
    part = student_class.from_encoder(student, layers=[1])
    assert (part.config.embedding_size, part.config.num_hidden_layers) == (8, 1)
    with pytest.raises(ValueError, match="embedding_size"):
        student_class.from_encoder(source, embedding_size=24)


def test_labels_of_tagging_go_with_the_head_unless_others_are_given():
    source = MwpStudentForPreTraining(tiny_config(num_pos_tags=0, pos_labels=["B-n", "I-n"], pos_tagger="jieba"))
    same = MwpStudentForPreTraining.from_encoder(source)
    assert (same.config.pos_labels, same.config.pos_tagger) == (["B-n", "I-n"], "jieba")
    assert torch.equal(same.cls.pos_tagger.weight, source.cls.pos_tagger.weight)
    other = MwpStudentForPreTraining.from_encoder(source, pos_labels=["B-v", "I-v", "B-x"])
    assert (other.config.num_pos_tags, other.config.pos_tagger) == (3, None)
