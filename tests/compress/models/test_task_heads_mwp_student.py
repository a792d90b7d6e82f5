"""Students for token classification, question answering and multiple choice."""

import math

import pytest
import torch
from transformers import (
    AutoModel,
    AutoModelForMultipleChoice,
    AutoModelForQuestionAnswering,
    AutoModelForTokenClassification,
    BertForQuestionAnswering,
)

from hf_mwp.compress.models.mwp_student import (
    MwpStudentForMultipleChoice,
    MwpStudentForQuestionAnswering,
    MwpStudentForTokenClassification,
    MwpStudentModel,
)
from hf_mwp.compress.models.mwp_student.task_heads_mwp_student import position_cross_entropy
from tests.compress.models.tiny_student import assert_all_weights_are_loaded, pruned_config, tiny_config
from tests.compress.pruning.encoders import head_batch, tiny_batch
from tests.slow_parameters import slow_after
from tests.tiny import tiny_bert_config


TASK_CLASSES = {
    MwpStudentForTokenClassification: AutoModelForTokenClassification,
    MwpStudentForQuestionAnswering: AutoModelForQuestionAnswering,
    MwpStudentForMultipleChoice: AutoModelForMultipleChoice,
}


def batch_of(model):
    return head_batch(model, type(model).__name__.removeprefix("MwpStudent"))


@pytest.mark.parametrize("model_class", slow_after(1, TASK_CLASSES))
def test_saved_task_model_is_loaded_by_its_auto_class(model_class, tmp_path):
    model = model_class(pruned_config(num_labels=3)).eval()
    model.save_pretrained(tmp_path)
    loaded, info = TASK_CLASSES[model_class].from_pretrained(tmp_path, output_loading_info=True)
    assert type(loaded) is model_class
    assert_all_weights_are_loaded(info)
    inputs = batch_of(model)
    for name, values in model(**inputs).items():
        torch.testing.assert_close(loaded(**inputs)[name], values, rtol=0, atol=1e-6)
    # The encoder alone, without the head, and with a new pooler if the task has none.
    encoder = AutoModel.from_pretrained(tmp_path)
    states = model.mwp_student(**tiny_batch(model)).last_hidden_state
    torch.testing.assert_close(encoder(**tiny_batch(model)).last_hidden_state, states, rtol=0, atol=0)


@pytest.mark.parametrize("model_class", slow_after(1, TASK_CLASSES))
def test_encoder_folder_is_loaded_with_a_new_head(model_class, tmp_path):
    encoder = MwpStudentModel(tiny_config()).eval()
    encoder.save_pretrained(tmp_path)
    model, info = model_class.from_pretrained(tmp_path, output_loading_info=True)
    heads = {name.partition(".")[0] for name in info["missing_keys"]}
    assert heads == {"qa_outputs"} if model_class is MwpStudentForQuestionAnswering else heads == {"classifier"}
    assert not info["unexpected_keys"] or set(info["unexpected_keys"]) == {"pooler.dense.bias", "pooler.dense.weight"}


@pytest.mark.parametrize("model_class", TASK_CLASSES)
def test_outputs_as_a_tuple(model_class):
    model = model_class(tiny_config()).eval()
    assert isinstance(model(**batch_of(model), return_dict=False), tuple)
    assert isinstance(model_class(tiny_config(return_dict=False)).eval()(**batch_of(model)), tuple)


def test_loss_of_tokens_is_the_mean_over_the_labels():
    model = MwpStudentForTokenClassification(tiny_config(num_labels=3)).eval()
    inputs = tiny_batch(model)
    labels = torch.full((3, 9), -100)
    labels[0, 1] = 2
    labels[2, 3] = 0
    output = model(**inputs, labels=labels)
    log_probabilities = output.logits.log_softmax(-1)
    expected = -(log_probabilities[0, 1, 2] + log_probabilities[2, 3, 0]) / 2
    torch.testing.assert_close(output.loss, expected)
    assert model(**inputs, labels=torch.full((3, 9), -100)).loss == 0


def test_position_loss_by_hand():
    # Probabilities 1/4, 1/4, 1/2, and 1/2, 1/4, 1/4.
    logits = torch.tensor([[0.0, 0.0, math.log(2)], [math.log(2), 0.0, 0.0], [0.0, 0.0, 0.0]])
    loss = position_cross_entropy(logits, torch.tensor([2, 1, 3]))
    # Without the third row, whose answer was truncated: (ln 2 + ln 4) / 2.
    assert loss.item() == pytest.approx(1.5 * math.log(2), abs=1e-6)
    assert position_cross_entropy(logits, torch.tensor([3, 9, 4])) == 0
    # Columns of positions, and negative ones.
    assert position_cross_entropy(logits[:2], torch.tensor([[2], [-1]])).item() == pytest.approx(math.log(2), abs=1e-6)


def test_question_loss_is_that_of_transformers():
    source = BertForQuestionAnswering(tiny_bert_config()).eval()
    student = MwpStudentForQuestionAnswering.from_encoder(source)
    inputs = tiny_batch(source)
    inputs |= {"start_positions": torch.tensor([1, 8, 9]), "end_positions": torch.tensor([3, 9, -1])}
    expected = source(**inputs)
    output = student(**inputs)
    torch.testing.assert_close(output.loss, expected.loss)
    torch.testing.assert_close(output.end_logits, expected.end_logits)
    # One kind of positions alone has no loss.
    del inputs["end_positions"]
    assert student(**inputs).loss is None


def test_each_choice_is_scored_as_a_text_of_its_own():
    model = MwpStudentForMultipleChoice(tiny_config()).eval()
    inputs = tiny_batch(model, rows=6)
    expected = []
    for row in range(6):
        text = {name: values[row : row + 1] for name, values in inputs.items()}
        pooled = model.mwp_student(**text).pooler_output
        expected.append(model.classifier(pooled).item())
    choices = {name: values.view(2, 3, 9) for name, values in inputs.items()}
    output = model(**choices, labels=torch.tensor([2, -100]), output_hidden_states=True)
    assert output.logits.shape == (2, 3) and output.hidden_states[0].shape == (6, 9, 24)
    torch.testing.assert_close(output.logits.flatten(), torch.tensor(expected), rtol=0, atol=1e-6)
    torch.testing.assert_close(output.loss, -output.logits[0].log_softmax(-1)[2])
    embeddings = model.get_input_embeddings()(choices["input_ids"])
    by_embeddings = model(inputs_embeds=embeddings, attention_mask=choices["attention_mask"])
    torch.testing.assert_close(by_embeddings.logits, output.logits)
