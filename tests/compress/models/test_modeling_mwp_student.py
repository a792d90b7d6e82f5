import copy

import pytest
import torch
from datasets import Dataset
from transformers import (
    AutoModel,
    AutoModelForMaskedLM,
    AutoModelForPreTraining,
    AutoModelForSequenceClassification,
    Trainer,
    TrainingArguments,
)

from hf_mwp.compress.models.mwp_student import (
    MwpStudentConfig,
    MwpStudentForMaskedLM,
    MwpStudentForPreTraining,
    MwpStudentForSequenceClassification,
    MwpStudentModel,
)
from tests.compress.models.tiny_student import VOCAB, assert_same_outputs, pruned_config, tiny_batch, tiny_config


def test_chinese_student_has_the_papers_number_of_parameters():
    # 21,128 entries of Chinese BERT's vocabulary and [NUM]: "10.3M" in the paper.
    with torch.device("meta"):
        model = MwpStudentModel(MwpStudentConfig(vocab_size=21129))
    assert model.num_parameters() == 10_277_448


@pytest.mark.parametrize("config", [tiny_config(), pruned_config(), tiny_config(position_offset=1)])
def test_save_and_load_with_auto_model(tmp_path, config):
    model = MwpStudentModel(config).eval()
    model.save_pretrained(tmp_path)
    loaded, report = AutoModel.from_pretrained(tmp_path, output_loading_info=True)
    assert type(loaded) is MwpStudentModel
    assert not any(report[key] for key in ("missing_keys", "unexpected_keys", "mismatched_keys"))
    inputs = tiny_batch()
    assert_same_outputs(loaded(**inputs, output_hidden_states=True), model(**inputs, output_hidden_states=True))


@pytest.mark.parametrize(
    ("auto_class", "model_class"),
    [
        (AutoModelForMaskedLM, MwpStudentForMaskedLM),
        (AutoModelForPreTraining, MwpStudentForPreTraining),
        (AutoModelForSequenceClassification, MwpStudentForSequenceClassification),
    ],
)
def test_save_and_load_of_task_models(tmp_path, auto_class, model_class):
    model = auto_class.from_config(pruned_config()).eval()
    assert type(model) is model_class
    model.save_pretrained(tmp_path)
    loaded, report = auto_class.from_pretrained(tmp_path, output_loading_info=True)
    assert type(loaded) is model_class
    assert not any(report[key] for key in ("missing_keys", "unexpected_keys", "mismatched_keys"))
    inputs = tiny_batch()
    assert torch.equal(loaded(**inputs).logits, model(**inputs).logits)


def test_pretraining_checkpoint_loads_as_encoder_masked_lm_and_classifier(tmp_path):
    model = MwpStudentForPreTraining(tiny_config()).eval()
    model.save_pretrained(tmp_path)
    inputs = tiny_batch()
    masked_lm, report = AutoModelForMaskedLM.from_pretrained(tmp_path, output_loading_info=True)
    assert not report["missing_keys"] and not report["unexpected_keys"]
    assert torch.equal(masked_lm(**inputs).logits, model(**inputs).logits)
    encoder = AutoModel.from_pretrained(tmp_path, add_pooling_layer=False)
    assert torch.equal(encoder(**inputs).last_hidden_state, model.mwp_student(**inputs).last_hidden_state)
    classifier = AutoModelForSequenceClassification.from_pretrained(tmp_path, num_labels=3)
    for parameter in classifier.parameters():
        assert parameter.isfinite().all()
    assert classifier.classifier.weight.std() < 1
    assert torch.count_nonzero(classifier.classifier.bias) == 0


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_precision_checkpoint_loads_in_its_dtype(tmp_path, dtype):
    MwpStudentModel(tiny_config()).to(dtype).save_pretrained(tmp_path)
    loaded = AutoModel.from_pretrained(tmp_path)
    assert loaded.dtype == dtype
    hidden = loaded(**tiny_batch()).last_hidden_state
    assert hidden.dtype == dtype and hidden.isfinite().all()
    assert AutoModel.from_pretrained(tmp_path, dtype=torch.float32).dtype == torch.float32


def test_model_can_be_built_on_the_meta_device():
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
    assert (model.mwp_student.embeddings.word_embeddings.weight[0] == 0).all()


def test_of_sublayers_without_heads_or_neurons_the_output_biases_are_left():
    config = tiny_config(num_hidden_layers=1, num_attention_heads=0, head_dim=6, intermediate_size=0)
    model = MwpStudentModel(config).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.copy_(torch.randn(parameter.shape))
    layer = model.encoder.layer[0]
    hidden = torch.randn(2, 5, 24)
    attended = layer.attention.output.LayerNorm(hidden + layer.attention.output.dense.bias)
    expected = layer.output.LayerNorm(attended + layer.output.dense.bias)
    assert torch.equal(layer(hidden)[0], expected)
    rest = {name for name, _ in layer.named_parameters() if "LayerNorm" not in name}
    assert rest == {"attention.output.dense.bias", "output.dense.bias"}


def test_eager_and_sdpa_agree():
    model = MwpStudentModel(pruned_config()).eval()
    inputs = tiny_batch()
    model.set_attn_implementation("eager")
    eager = model(**inputs)
    model.set_attn_implementation("sdpa")
    assert model.config._attn_implementation == "sdpa"
    tokens = inputs["attention_mask"].bool()
    sdpa = model(**inputs)
    torch.testing.assert_close(sdpa.last_hidden_state[tokens], eager.last_hidden_state[tokens])
    torch.testing.assert_close(sdpa.pooler_output, eager.pooler_output)


@pytest.mark.parametrize("implementation", ["eager", "sdpa"])
def test_padding_does_not_change_the_tokens(implementation):
    for offset in (0, 1):
        model = MwpStudentModel(tiny_config(position_offset=offset), add_pooling_layer=False).eval()
        model.set_attn_implementation(implementation)
        inputs = tiny_batch()
        together = model(**inputs).last_hidden_state
        for row, length in enumerate(inputs["attention_mask"].sum(1).tolist()):
            alone = model(inputs["input_ids"][row : row + 1, :length]).last_hidden_state
            torch.testing.assert_close(together[row, :length], alone[0])


def test_hidden_states_begin_with_the_embeddings():
    model = MwpStudentModel(tiny_config()).eval()
    inputs = tiny_batch()
    outputs = model(**inputs, output_hidden_states=True)
    assert len(outputs.hidden_states) == 4
    assert torch.equal(outputs.hidden_states[0], model.embeddings(inputs["input_ids"]))
    assert outputs.hidden_states[-1] is outputs.last_hidden_state
    assert model(**inputs).hidden_states is None
    model.config.output_hidden_states = True
    assert len(model(**inputs).hidden_states) == 4


def test_attentions_are_probabilities_of_the_heads_of_each_layer():
    model = MwpStudentModel(pruned_config()).eval()
    model.set_attn_implementation("eager")
    inputs = tiny_batch()
    attentions = model(**inputs, output_attentions=True).attentions
    assert [tuple(attention.shape) for attention in attentions] == [(3, 4, 9, 9), (3, 1, 9, 9), (3, 0, 9, 9)]
    torch.testing.assert_close(attentions[0].sum(-1), torch.ones(3, 4, 9))
    padding = inputs["attention_mask"][:, None, None, :].expand(3, 4, 9, 9) == 0
    assert (attentions[0][padding] == 0).all()


def test_attentions_need_eager():
    model = MwpStudentModel(tiny_config()).eval()
    model.set_attn_implementation("sdpa")
    assert model(**tiny_batch(), output_attentions=True).attentions == ()


# Newer releases of transformers prefer another name, which the older supported ones do not have.
@pytest.mark.filterwarnings("ignore:`gradient_checkpointing_enable`:FutureWarning")
@pytest.mark.parametrize("use_reentrant", [True, False])
def test_gradient_checkpointing_gives_the_same_gradients(use_reentrant):
    model = MwpStudentForPreTraining(pruned_config(hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0))
    inputs = tiny_batch()
    labels = inputs["input_ids"].masked_fill(inputs["attention_mask"] == 0, -100)

    def gradients():
        model.zero_grad()
        model(**inputs, labels=labels, pos_labels=labels % 5).loss.backward()
        return {name: parameter.grad.clone() for name, parameter in model.named_parameters()}

    expected = gradients()
    model.gradient_checkpointing_enable({"use_reentrant": use_reentrant})
    calls = []
    handle = model.mwp_student.encoder.layer[0].attention.self.query.register_forward_hook(lambda *_: calls.append(1))
    actual = gradients()
    handle.remove()
    assert len(calls) == 2
    for name, value in expected.items():
        torch.testing.assert_close(actual[name], value, msg=name)


def test_outputs_as_a_tuple():
    inputs = tiny_batch()
    model = MwpStudentModel(tiny_config()).eval()
    hidden, pooled = model(**inputs, return_dict=False)
    assert torch.equal(hidden, model(**inputs).last_hidden_state)
    assert pooled.shape == (3, 24)
    for task_class in (MwpStudentForMaskedLM, MwpStudentForPreTraining, MwpStudentForSequenceClassification):
        assert isinstance(task_class(tiny_config()).eval()(**inputs, return_dict=False), tuple)
        assert isinstance(task_class(tiny_config(return_dict=False)).eval()(**inputs), tuple)


@pytest.mark.parametrize(
    "task_class", [MwpStudentForMaskedLM, MwpStudentForPreTraining, MwpStudentForSequenceClassification]
)
def test_heads_name_their_inputs(task_class, tmp_path):
    model = task_class(tiny_config()).eval()
    inputs = {"input_ids": torch.tensor([[5, 6, 7]])}
    expected = model(**inputs, position_ids=torch.tensor([[2, 0, 1]])).logits
    assert not torch.equal(model(**inputs).logits, expected)
    embeddings = model.get_input_embeddings()(inputs["input_ids"])
    assert torch.equal(model(inputs_embeds=embeddings, position_ids=torch.tensor([[2, 0, 1]])).logits, expected)
    # `Trainer` keeps the columns that `forward` names.
    trainer = Trainer(model, TrainingArguments(str(tmp_path), use_cpu=True, report_to="none"))
    names = ["input_ids", "attention_mask", "token_type_ids", "position_ids", "inputs_embeds", "labels"]
    rows = Dataset.from_list([{name: [1] for name in [*names, "text"]}])
    assert trainer._remove_unused_columns(rows).column_names == names


def test_wrong_inputs_raise_and_say_what_to_do():
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
    assert model.get_output_embeddings().weight is model.get_input_embeddings().weight
    model.resize_token_embeddings(VOCAB + 1)
    assert model.config.vocab_size == VOCAB + 1
    assert model.get_output_embeddings().weight is model.get_input_embeddings().weight
    assert model.get_output_embeddings().bias.shape == (VOCAB + 1,)
    assert model(**tiny_batch(), labels=torch.full((3, 9), VOCAB)).logits.shape == (3, 9, VOCAB + 1)
    model.save_pretrained(tmp_path)
    loaded = AutoModelForMaskedLM.from_pretrained(tmp_path)
    assert loaded.get_output_embeddings().weight is loaded.get_input_embeddings().weight


def test_masked_lm_loss_is_the_mean_over_the_labels():
    model = MwpStudentForMaskedLM(tiny_config()).eval()
    inputs = tiny_batch()
    labels = torch.full((3, 9), -100)
    labels[0, 2], labels[1, 1], labels[2, 0] = 7, 8, 9
    outputs = model(**inputs, labels=labels)
    log_probabilities = outputs.logits.log_softmax(-1)
    expected = -(log_probabilities[0, 2, 7] + log_probabilities[1, 1, 8] + log_probabilities[2, 0, 9]) / 3
    torch.testing.assert_close(outputs.loss, expected)


def test_loss_without_labelled_tokens_is_zero():
    labels = torch.full((3, 9), -100)
    for sparse in (False, True):
        model = MwpStudentForMaskedLM(tiny_config(sparse_prediction=sparse))
        loss = model(**tiny_batch(), labels=labels).loss
        loss.backward()
        assert loss.item() == 0.0
        assert all(parameter.grad.isfinite().all() for parameter in model.parameters())


def test_sparse_prediction_scores_the_labelled_tokens_only():
    dense = MwpStudentForPreTraining(tiny_config(hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0))
    sparse = copy.deepcopy(dense)
    sparse.cls.predictions.sparse = True
    inputs = tiny_batch()
    labels = torch.full((3, 9), -100)
    labels[0, 2], labels[1, 1] = 7, 8
    scored = []
    sparse.cls.predictions.decoder.register_forward_hook(lambda module, args, output: scored.append(len(output)))
    expected = dense(**inputs, labels=labels)
    outputs = sparse(**inputs, labels=labels)
    assert scored == [64]  # a whole block of rows, of which two are labelled
    torch.testing.assert_close(outputs.logits, expected.logits[labels != -100])
    torch.testing.assert_close(outputs.loss, expected.loss)
    expected.loss.backward()
    outputs.loss.backward()
    for one, other in zip(sparse.mwp_student.parameters(), dense.mwp_student.parameters(), strict=True):
        torch.testing.assert_close(one.grad, other.grad)
    told = sparse(**inputs, labels=labels, masked_positions=torch.tensor([2, 10]))
    assert torch.equal(told.logits, outputs.logits) and torch.equal(told.loss, outputs.loss)
    assert sparse(**inputs).logits.shape == (3, 9, VOCAB)
    assert MwpStudentForPreTraining(tiny_config(sparse_prediction=True)).cls.predictions.sparse


def test_sparse_prediction_without_masks_scores_no_vocabulary():
    model = MwpStudentForPreTraining(tiny_config(hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0))
    pos_labels = torch.zeros((3, 9), dtype=torch.long)
    expected = model(**tiny_batch(), pos_labels=pos_labels)
    model.cls.predictions.sparse = True
    outputs = model(**tiny_batch(), pos_labels=pos_labels)
    assert outputs.logits is None and outputs.mlm_loss is None and expected.logits is not None
    torch.testing.assert_close(outputs.loss, expected.loss)
    outputs.loss.backward()
    assert model.cls.predictions.transform.dense.weight.grad is None


@pytest.mark.parametrize("weight", [None, 0.5])
def test_pretraining_loss_is_weighted_one_to_five(weight):
    fields = {} if weight is None else {"pos_loss_weight": weight}
    model = MwpStudentForPreTraining(tiny_config(**fields)).eval()
    inputs = tiny_batch()
    labels = torch.full((3, 9), -100)
    labels[0, 2] = 7
    pos_labels = torch.full((3, 9), -100)
    pos_labels[0, 1], pos_labels[1, 0] = 4, 0
    outputs = model(**inputs, labels=labels, pos_labels=pos_labels)
    log_probabilities = outputs.pos_logits.log_softmax(-1)
    torch.testing.assert_close(outputs.pos_loss, -(log_probabilities[0, 1, 4] + log_probabilities[1, 0, 0]) / 2)
    torch.testing.assert_close(outputs.loss, outputs.mlm_loss + (weight or 5.0) * outputs.pos_loss)
    assert torch.equal(model(**inputs, labels=labels).loss, outputs.mlm_loss)
    torch.testing.assert_close(model(**inputs, pos_labels=pos_labels).loss, (weight or 5.0) * outputs.pos_loss)
    assert model(**inputs).loss is None


def test_classification_losses():
    inputs = tiny_batch()
    classifier = MwpStudentForSequenceClassification(tiny_config(num_labels=3)).eval()
    logits = classifier(**inputs).logits
    labels = torch.tensor([0, 2, 1])
    expected = -logits.log_softmax(-1)[torch.arange(3), labels].mean()
    torch.testing.assert_close(classifier(**inputs, labels=labels).loss, expected)
    targets = torch.tensor([[1.0, 0, 0], [0, 1, 1], [0, 0, 0]])
    expected = -(targets * logits.sigmoid().log() + (1 - targets) * (1 - logits.sigmoid()).log()).mean()
    torch.testing.assert_close(classifier(**inputs, labels=targets).loss, expected)
    regressor = MwpStudentForSequenceClassification(tiny_config(num_labels=1)).eval()
    labels = torch.tensor([0.5, 2.0, -1.0])
    expected = (regressor(**inputs).logits[:, 0] - labels).square().mean()
    torch.testing.assert_close(regressor(**inputs, labels=labels).loss, expected)


def test_every_parameter_gets_a_gradient():
    inputs = tiny_batch()
    labels = inputs["input_ids"].masked_fill(inputs["attention_mask"] == 0, -100)
    model = MwpStudentForPreTraining(pruned_config())
    model(**inputs, labels=labels, pos_labels=labels % 5).loss.backward()
    assert [name for name, parameter in model.named_parameters() if parameter.grad is None] == []
    classifier = MwpStudentForSequenceClassification(pruned_config())
    classifier(**inputs, labels=torch.tensor([0, 1, 0])).loss.backward()
    assert [name for name, parameter in classifier.named_parameters() if parameter.grad is None] == []


def test_trainer_does_not_hand_over_the_normalisation_of_the_loss():
    assert MwpStudentForPreTraining.accepts_loss_kwargs is False
