import copy

import pytest
import torch
from datasets import Dataset
from transformers import (
    AutoModel,
    AutoModelForMaskedLM,
    AutoModelForPreTraining,
    AutoModelForSequenceClassification,
    AutoModelForTokenClassification,
    Trainer,
    TrainingArguments,
)

from hf_mwp.compress.models.mwp_student import (
    MwpStudentConfig,
    MwpStudentForMaskedLM,
    MwpStudentForPreTraining,
    MwpStudentForSequenceClassification,
    MwpStudentForTokenClassification,
    MwpStudentModel,
)
from tests.compress.models.tiny_student import (
    VOCAB,
    assert_all_weights_are_loaded,
    assert_same_states,
    pruned_config,
    tiny_config,
)
from tests.compress.pruning.encoders import tiny_batch
from tests.slow_parameters import slow_after


NO_DROPOUT = {"hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0}
INPUTS = tiny_batch(MwpStudentModel(tiny_config()))
TASK_CLASSES = {
    MwpStudentForMaskedLM: AutoModelForMaskedLM,
    MwpStudentForPreTraining: AutoModelForPreTraining,
    MwpStudentForSequenceClassification: AutoModelForSequenceClassification,
    MwpStudentForTokenClassification: AutoModelForTokenClassification,
}


def labels_at(labels):
    """Labels of a batch: those by `(row, token)`, -100 elsewhere."""
    table = torch.full((3, 9), -100)
    for position, label in labels.items():
        table[position] = label
    return table


def test_chinese_student_has_the_papers_number_of_parameters():
    # 21,128 entries of Chinese BERT's vocabulary and [NUM]: "10.3M" in the paper.
    with torch.device("meta"):
        model = MwpStudentModel(MwpStudentConfig(vocab_size=21129))
    assert model.num_parameters() == 10_277_448


@pytest.mark.parametrize("config", slow_after(2, [tiny_config(), pruned_config(), tiny_config(position_offset=1)]))
def test_saved_encoder_is_loaded_by_auto_model(config, tmp_path):
    model = MwpStudentModel(config).eval()
    model.save_pretrained(tmp_path)
    loaded, info = AutoModel.from_pretrained(tmp_path, output_loading_info=True)
    assert type(loaded) is MwpStudentModel
    assert_all_weights_are_loaded(info)
    assert_same_states(loaded(**INPUTS, output_hidden_states=True), model(**INPUTS, output_hidden_states=True))


@pytest.mark.parametrize("model_class", slow_after(2, TASK_CLASSES))
def test_saved_task_model_is_loaded_by_its_auto_class(model_class, tmp_path):
    auto_class = TASK_CLASSES[model_class]
    model = auto_class.from_config(pruned_config()).eval()
    assert type(model) is model_class
    model.save_pretrained(tmp_path)
    loaded, info = auto_class.from_pretrained(tmp_path, output_loading_info=True)
    assert type(loaded) is model_class
    assert_all_weights_are_loaded(info)
    assert torch.equal(loaded(**INPUTS).logits, model(**INPUTS).logits)


def test_pretraining_checkpoint_loads_as_encoder_masked_lm_and_classifier(tmp_path):
    model = MwpStudentForPreTraining(tiny_config()).eval()
    model.save_pretrained(tmp_path)
    masked_lm, info = AutoModelForMaskedLM.from_pretrained(tmp_path, output_loading_info=True)
    assert_all_weights_are_loaded(info)
    assert torch.equal(masked_lm(**INPUTS).logits, model(**INPUTS).logits)
    encoder = AutoModel.from_pretrained(tmp_path, add_pooling_layer=False)
    assert torch.equal(encoder(**INPUTS).last_hidden_state, model.mwp_student(**INPUTS).last_hidden_state)
    classifier = AutoModelForSequenceClassification.from_pretrained(tmp_path, num_labels=3)
    assert 0 < classifier.classifier.weight.std() < 1
    assert not classifier.classifier.bias.any()


def test_model_has_no_buffers_and_can_be_built_on_the_meta_device():
    with torch.device("meta"):
        model = MwpStudentForPreTraining(pruned_config())
    assert {parameter.device.type for parameter in model.parameters()} == {"meta"}
    assert not list(model.buffers())


def test_initial_weights():
    model = MwpStudentForPreTraining(tiny_config(hidden_size=64, initializer_range=0.05))
    for name, parameter in model.named_parameters():
        if name.endswith("LayerNorm.weight"):
            assert (parameter == 1).all()
        elif name.endswith("bias"):
            assert (parameter == 0).all()
        else:
            assert parameter.std().item() == pytest.approx(0.05, rel=0.25)
    assert not model.mwp_student.embeddings.word_embeddings.weight[0].any()


def test_sublayers_without_heads_or_neurons_add_only_their_output_bias():
    config = tiny_config(num_hidden_layers=1, num_attention_heads=0, head_dim=6, intermediate_size=0)
    model = MwpStudentModel(config).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.copy_(torch.randn(parameter.shape))
    layer = model.encoder.layer[0]
    hidden = torch.randn(2, 5, 24)
    attended = layer.attention.output.LayerNorm(hidden + layer.attention.output.dense.bias)
    assert torch.equal(layer(hidden)[0], layer.output.LayerNorm(attended + layer.output.dense.bias))
    names = {name for name, _ in layer.named_parameters() if "LayerNorm" not in name}
    assert names == {"attention.output.dense.bias", "output.dense.bias"}


def test_eager_and_sdpa_agree():
    model = MwpStudentModel(pruned_config()).eval()
    model.set_attn_implementation("eager")
    eager = model(**INPUTS)
    model.set_attn_implementation("sdpa")
    assert model.config._attn_implementation == "sdpa"
    sdpa = model(**INPUTS)
    tokens = INPUTS["attention_mask"].bool()
    torch.testing.assert_close(sdpa.last_hidden_state[tokens], eager.last_hidden_state[tokens])
    torch.testing.assert_close(sdpa.pooler_output, eager.pooler_output)


@pytest.mark.parametrize("implementation", ["eager", "sdpa"])
@pytest.mark.parametrize("offset", [0, 1])
def test_padding_does_not_change_the_tokens(implementation, offset):
    model = MwpStudentModel(tiny_config(position_offset=offset), add_pooling_layer=False).eval()
    model.set_attn_implementation(implementation)
    together = model(**INPUTS).last_hidden_state
    for row, length in enumerate(INPUTS["attention_mask"].sum(1).tolist()):
        alone = model(INPUTS["input_ids"][row : row + 1, :length]).last_hidden_state
        torch.testing.assert_close(together[row, :length], alone[0])


def test_hidden_states_begin_with_the_embeddings():
    model = MwpStudentModel(tiny_config()).eval()
    outputs = model(**INPUTS, output_hidden_states=True)
    assert len(outputs.hidden_states) == 4
    assert torch.equal(outputs.hidden_states[0], model.embeddings(INPUTS["input_ids"]))
    assert outputs.hidden_states[-1] is outputs.last_hidden_state
    assert model(**INPUTS).hidden_states is None
    model.config.output_hidden_states = True
    assert len(model(**INPUTS).hidden_states) == 4


def test_attentions_are_probabilities_of_the_heads_of_each_layer():
    model = MwpStudentModel(pruned_config()).eval()
    assert model(**INPUTS, output_attentions=True).attentions == ()  # sdpa has none
    model.set_attn_implementation("eager")
    attentions = model(**INPUTS, output_attentions=True).attentions
    assert [tuple(attention.shape) for attention in attentions] == [(3, 4, 9, 9), (3, 1, 9, 9), (3, 0, 9, 9)]
    torch.testing.assert_close(attentions[0].sum(-1), torch.ones(3, 4, 9))
    padding = INPUTS["attention_mask"][:, None, None, :].expand(3, 4, 9, 9) == 0
    assert not attentions[0][padding].any()


# Newer releases of transformers prefer another name, which the older supported ones do not have.
@pytest.mark.filterwarnings("ignore:`gradient_checkpointing_enable`:FutureWarning")
@pytest.mark.parametrize("use_reentrant", [True, False])
def test_gradient_checkpointing_gives_the_same_gradients(use_reentrant):
    model = MwpStudentForPreTraining(pruned_config(**NO_DROPOUT))
    labels = INPUTS["input_ids"].masked_fill(INPUTS["attention_mask"] == 0, -100)
    calls = []
    query = model.mwp_student.encoder.layer[0].attention.self.query
    query.register_forward_hook(lambda *args: calls.append(args))

    def gradients():
        model.zero_grad()
        calls.clear()
        model(**INPUTS, labels=labels, pos_labels=labels % 5).loss.backward()
        return {name: parameter.grad.clone() for name, parameter in model.named_parameters()}

    expected = gradients()
    assert len(calls) == 1
    model.gradient_checkpointing_enable({"use_reentrant": use_reentrant})
    torch.testing.assert_close(gradients(), expected)
    assert len(calls) == 2


def test_outputs_as_a_tuple():
    model = MwpStudentModel(tiny_config()).eval()
    hidden, pooled = model(**INPUTS, return_dict=False)
    assert torch.equal(hidden, model(**INPUTS).last_hidden_state)
    assert pooled.shape == (3, 24)
    for task_class in TASK_CLASSES:
        assert isinstance(task_class(tiny_config()).eval()(**INPUTS, return_dict=False), tuple)
        assert isinstance(task_class(tiny_config(return_dict=False)).eval()(**INPUTS), tuple)


@pytest.mark.parametrize("task_class", slow_after(2, TASK_CLASSES))
def test_task_models_name_and_pass_on_their_inputs(task_class, tmp_path):
    model = task_class(tiny_config()).eval()
    inputs = {"input_ids": torch.tensor([[5, 6, 7]])}
    positions = torch.tensor([[2, 0, 1]])
    expected = model(**inputs, position_ids=positions).logits
    assert not torch.equal(model(**inputs).logits, expected)
    embeddings = model.get_input_embeddings()(inputs["input_ids"])
    assert torch.equal(model(inputs_embeds=embeddings, position_ids=positions).logits, expected)
    # `Trainer` keeps the columns that `forward` names.
    trainer = Trainer(model, TrainingArguments(str(tmp_path), use_cpu=True, report_to="none"))
    names = ["input_ids", "attention_mask", "token_type_ids", "position_ids", "inputs_embeds", "labels"]
    rows = Dataset.from_list([dict.fromkeys([*names, "text"], [1])])
    assert trainer._remove_unused_columns(rows).column_names == names


def test_wrong_inputs_raise():
    model = MwpStudentModel(tiny_config(position_offset=2, pad_token_id=1)).eval()
    with pytest.raises(ValueError, match="`input_ids`.*`inputs_embeds`"):
        model()
    with pytest.raises(ValueError, match="`input_ids`.*`inputs_embeds`"):
        model(torch.ones(1, 2, dtype=torch.long), inputs_embeds=torch.ones(1, 2, 24))
    assert model(torch.full((1, 30), 5)).last_hidden_state.shape == (1, 30, 24)
    with pytest.raises(ValueError, match="31 tokens.* 30.*truncation=True"):
        model(torch.full((1, 31), 5))
    with pytest.raises(ValueError, match="`num_pos_tags`"):
        MwpStudentForPreTraining(tiny_config(num_pos_tags=0))


def test_masked_lm_ties_its_matrix_and_follows_a_new_vocabulary(tmp_path):
    model = MwpStudentForMaskedLM(tiny_config())
    model.resize_token_embeddings(VOCAB + 1)
    assert model.config.vocab_size == VOCAB + 1
    assert model.get_output_embeddings().bias.shape == (VOCAB + 1,)
    assert model(**INPUTS, labels=torch.full((3, 9), VOCAB)).logits.shape == (3, 9, VOCAB + 1)
    model.save_pretrained(tmp_path)
    loaded = AutoModelForMaskedLM.from_pretrained(tmp_path)
    for masked_lm in (model, loaded):
        assert masked_lm.get_output_embeddings().weight is masked_lm.get_input_embeddings().weight


def test_masked_lm_loss_is_the_mean_over_the_labels():
    model = MwpStudentForMaskedLM(tiny_config()).eval()
    outputs = model(**INPUTS, labels=labels_at({(0, 2): 7, (1, 1): 8, (2, 0): 9}))
    log_probabilities = outputs.logits.log_softmax(-1)
    expected = -(log_probabilities[0, 2, 7] + log_probabilities[1, 1, 8] + log_probabilities[2, 0, 9]) / 3
    torch.testing.assert_close(outputs.loss, expected)


@pytest.mark.parametrize("sparse", [False, True])
def test_loss_without_labelled_tokens_is_zero(sparse):
    model = MwpStudentForMaskedLM(tiny_config(sparse_prediction=sparse))
    loss = model(**INPUTS, labels=labels_at({})).loss
    loss.backward()
    assert loss.item() == 0.0
    for parameter in model.parameters():
        assert parameter.grad.isfinite().all()


def test_sparse_prediction_scores_the_labelled_tokens_only():
    dense = MwpStudentForPreTraining(tiny_config(**NO_DROPOUT))
    sparse = copy.deepcopy(dense)
    sparse.cls.predictions.sparse = True
    labels = labels_at({(0, 2): 7, (1, 1): 8})
    num_scored = []
    sparse.cls.predictions.decoder.register_forward_hook(lambda module, args, output: num_scored.append(len(output)))
    expected = dense(**INPUTS, labels=labels)
    outputs = sparse(**INPUTS, labels=labels)
    assert num_scored == [64]  # a whole block of rows, of which two are labelled
    torch.testing.assert_close(outputs.logits, expected.logits[labels != -100])
    torch.testing.assert_close(outputs.loss, expected.loss)
    expected.loss.backward()
    outputs.loss.backward()
    dense_parameters = dict(dense.mwp_student.named_parameters())
    for name, parameter in sparse.mwp_student.named_parameters():
        torch.testing.assert_close(parameter.grad, dense_parameters[name].grad)
    with_positions = sparse(**INPUTS, labels=labels, masked_positions=torch.tensor([2, 10]))
    assert torch.equal(with_positions.logits, outputs.logits) and torch.equal(with_positions.loss, outputs.loss)
    assert sparse(**INPUTS).logits.shape == (3, 9, VOCAB)


def test_sparse_prediction_without_masks_scores_no_vocabulary():
    model = MwpStudentForPreTraining(tiny_config(**NO_DROPOUT))
    pos_labels = torch.zeros((3, 9), dtype=torch.long)
    expected = model(**INPUTS, pos_labels=pos_labels)
    model.cls.predictions.sparse = True
    outputs = model(**INPUTS, pos_labels=pos_labels)
    assert outputs.logits is None and outputs.mlm_loss is None and expected.logits is not None
    torch.testing.assert_close(outputs.loss, expected.loss)
    outputs.loss.backward()
    assert model.cls.predictions.transform.dense.weight.grad is None


@pytest.mark.parametrize(("fields", "weight"), [({}, 5.0), ({"pos_loss_weight": 0.5}, 0.5)])
def test_pretraining_loss_is_a_weighted_sum(fields, weight):
    model = MwpStudentForPreTraining(tiny_config(**fields)).eval()
    labels = labels_at({(0, 2): 7})
    pos_labels = labels_at({(0, 1): 4, (1, 0): 0})
    outputs = model(**INPUTS, labels=labels, pos_labels=pos_labels)
    log_probabilities = outputs.pos_logits.log_softmax(-1)
    torch.testing.assert_close(outputs.pos_loss, -(log_probabilities[0, 1, 4] + log_probabilities[1, 0, 0]) / 2)
    torch.testing.assert_close(outputs.loss, outputs.mlm_loss + weight * outputs.pos_loss)
    assert torch.equal(model(**INPUTS, labels=labels).loss, outputs.mlm_loss)
    torch.testing.assert_close(model(**INPUTS, pos_labels=pos_labels).loss, weight * outputs.pos_loss)
    assert model(**INPUTS).loss is None


def test_classification_losses():
    classifier = MwpStudentForSequenceClassification(tiny_config(num_labels=3)).eval()
    logits = classifier(**INPUTS).logits
    labels = torch.tensor([0, 2, 1])
    expected = -logits.log_softmax(-1)[torch.arange(3), labels].mean()
    torch.testing.assert_close(classifier(**INPUTS, labels=labels).loss, expected)
    targets = torch.tensor([[1.0, 0, 0], [0, 1, 1], [0, 0, 0]])
    expected = -(targets * logits.sigmoid().log() + (1 - targets) * (1 - logits.sigmoid()).log()).mean()
    torch.testing.assert_close(classifier(**INPUTS, labels=targets).loss, expected)
    regressor = MwpStudentForSequenceClassification(tiny_config(num_labels=1)).eval()
    labels = torch.tensor([0.5, 2.0, -1.0])
    expected = (regressor(**INPUTS).logits[:, 0] - labels).square().mean()
    torch.testing.assert_close(regressor(**INPUTS, labels=labels).loss, expected)


def test_trainer_does_not_pass_the_normalisation_of_the_loss():
    assert MwpStudentForPreTraining.accepts_loss_kwargs is False
