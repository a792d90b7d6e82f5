"""Distillation of models that are no solvers, and of models that do not fit."""

import copy

import pytest
import torch
from accelerate import Accelerator, DistributedType
from torch import nn
from transformers import (
    BatchEncoding,
    BertModel,
    ViTConfig,
    ViTForImageClassification,
    ViTImageProcessorPil,
)

from hf_mwp.compress.losses import CKALoss, HiddenMSELoss
from hf_mwp.compress.models.model_kind import check_embeddings
from hf_mwp.compress.trainers import DistillationTrainer
from hf_mwp.runtime.output_vocabulary import OutputVocabulary
from hf_mwp.solver.batches.mwp_processor import MwpProcessor
from tests.compress.pruning.encoders import tiny_encoder
from tests.compress.trainers.distilling import (
    assert_same_training,
    bart,
    first_losses,
    masked_lm_rows,
    pad,
    training_logs,
    without_labels,
)
from tests.slow_parameters import slow_after
from tests.tiny import (
    tiny_bert_config,
    tiny_classifier,
    tiny_classifier_rows,
    tiny_masked_lm,
    tiny_processor,
    tiny_solver,
    tiny_tokenizer,
)


@pytest.mark.slow
def test_rows_may_be_batch_encodings(model_trainer):
    rows = tiny_classifier_rows()
    encodings = [BatchEncoding(row) for row in rows]
    expected = first_losses(model_trainer(rows=rows, cache_teacher_outputs=True))
    assert first_losses(model_trainer(rows=encodings, cache_teacher_outputs=True)) == expected


def accuracy(prediction):
    return {"accuracy": float((prediction.predictions.argmax(-1) == prediction.label_ids).mean())}


def test_predictions_are_logits_in_the_order_of_the_rows(model_trainer):
    fields = {"eval_strategy": "epoch", "save_strategy": "epoch", "load_best_model_at_end": True}
    trainer = model_trainer(**fields)
    assert trainer.args.metric_for_best_model == "loss"
    rows = tiny_classifier_rows(16)
    with torch.no_grad():
        expected = trainer.model.eval()(**pad(rows)).logits
    torch.testing.assert_close(torch.tensor(trainer.predict(rows).predictions), expected)


def test_training_rows_without_labels_and_evaluation_rows_with_labels(model_trainer):
    rows = without_labels(tiny_classifier_rows())
    keywords = {"compute_metrics": accuracy}
    trainer = model_trainer(rows=rows, soft_label_weight=1.0, max_steps=1, eval_strategy="steps", keywords=keywords)
    trainer.train()
    batch = pad(tiny_classifier_rows(6, seed=1))
    with torch.no_grad():
        output = trainer.model.eval()(**batch)
    metrics = trainer.evaluate()
    assert metrics["eval_loss"] == pytest.approx(output.loss.item(), rel=1e-5)
    assert metrics["eval_accuracy"] == (output.logits.argmax(-1) == batch["labels"]).double().mean().item()
    # Rows without labels are evaluated by the training loss; only logits are gathered.
    result = trainer.predict(rows[:6])
    assert result.predictions.shape == (6, 3)
    assert result.label_ids is None
    assert "test_loss" in result.metrics
    with pytest.raises(ValueError, match="labels.*`soft_label_weight=1`"):
        model_trainer(rows=rows, max_steps=2).train()


@pytest.mark.parametrize("prediction_loss", slow_after(1, ["kd", "dkd"]))
def test_rows_with_the_label_minus_100_have_no_hard_label(model_trainer, prediction_loss):
    rows = tiny_classifier_rows(8)
    rows[0]["labels"] = -100
    rows[1]["labels"] = -100
    # A teacher that is sure of its answers, so that the loss is large compared with the rounding of fp32.
    teacher = tiny_classifier(seed=1)
    teacher.classifier.weight.data *= 50
    fields = {"prediction_loss": prediction_loss, "max_steps": 1, "hidden_loss": None, "embedding_weight": 0.0}
    soft_rows = rows[2:] if prediction_loss == "dkd" else rows
    expected = first_losses(model_trainer(None, teacher, soft_rows, **fields))
    fields |= {"per_device_train_batch_size": 1, "gradient_accumulation_steps": 8}
    losses = first_losses(model_trainer(None, teacher, rows, **fields))
    with torch.no_grad():
        hard_loss = tiny_classifier()(**pad(rows)).loss.item()
    assert losses["loss_hard"] == pytest.approx(hard_loss, rel=1e-5)
    assert losses["loss_soft"] == pytest.approx(expected["loss_soft"], rel=1e-4)


def divergence(teacher_logits, student_logits):
    """The Kullback-Leibler divergence of each row."""
    teacher_log = teacher_logits.log_softmax(-1)
    return (teacher_log.exp() * (teacher_log - student_logits.log_softmax(-1))).sum(-1)


@pytest.mark.parametrize(("cached", "compiled"), slow_after(1, [(False, False), (True, False), (False, True)]))
@torch.compiler.set_stance("force_eager")
def test_inputs_that_the_student_does_not_read_reach_the_teacher(model_trainer, cached, compiled):
    def pad_types(rows):
        types = [torch.tensor(row["token_type_ids"]) for row in rows]
        return pad(rows) | {"token_type_ids": nn.utils.rnn.pad_sequence(types, batch_first=True)}

    rows = tiny_classifier_rows(8)
    for row in rows:
        row["token_type_ids"] = [0] + [1] * (len(row["input_ids"]) - 1)
    dropouts = {"dropout": 0.0, "attention_dropout": 0.0, "seq_classif_dropout": 0.0}
    student = tiny_encoder("distilbert", "ForSequenceClassification", **dropouts)
    student_inputs = []
    student.register_forward_pre_hook(lambda module, args, kwargs: student_inputs.extend(kwargs), with_kwargs=True)
    teacher = tiny_classifier(1, initializer_range=0.5, num_hidden_layers=3)
    with torch.no_grad():
        expected = divergence(teacher.eval()(**pad_types(rows)).logits, student(**pad(rows)).logits)
    fields = {"torch_compile": compiled, "cache_teacher_outputs": cached}
    trainer = model_trainer(student, teacher, rows, rows, temperature=1.0, max_steps=1, **fields)
    trainer.data_collator = pad_types
    losses = first_losses(trainer)
    trainer.evaluate()
    assert losses["loss_soft"] == pytest.approx(expected.mean().item(), rel=1e-2 if cached else 1e-4)
    assert "labels" in student_inputs
    assert "token_type_ids" not in student_inputs


def on_another_device(model):
    """Puts a model on another device than the batches, until it is moved."""
    source = copy.deepcopy(model)
    model.to("meta")

    def to(device):
        for module, source_module in zip(model.modules(), source.modules(), strict=True):
            module._parameters.update(source_module._parameters)
            module._buffers.update(source_module._buffers)
        return model

    model.to = to
    return model


def test_models_are_moved_to_the_device_of_the_batches(model_trainer, monkeypatch):
    # `Trainer` moves the student later, and Accelerate does not move models with FSDP.
    rows = without_labels(tiny_classifier_rows())
    expected = model_trainer(rows=rows, eval_rows=rows, soft_label_weight=1.0).evaluate()["eval_loss"]
    monkeypatch.setattr(Accelerator, "distributed_type", DistributedType.FSDP)
    student = on_another_device(tiny_classifier())
    teacher = on_another_device(tiny_classifier(1, hidden_size=24, num_hidden_layers=4))
    trainer = model_trainer(student, teacher, rows, rows, soft_label_weight=1.0, bf16_full_eval=True)
    monkeypatch.undo()
    del trainer.model.to
    assert trainer.evaluate()["eval_loss"] == pytest.approx(expected, rel=0.02)


def test_encoders_without_predictions_learn_layers(model_trainer):
    rows = without_labels(tiny_classifier_rows())
    student = tiny_classifier().base_model
    teacher = tiny_classifier(seed=1, num_hidden_layers=4).base_model
    with pytest.raises(ValueError, match="logits.*`prediction_weight=0`"):
        model_trainer(student, teacher, rows, rows, max_steps=1).train()
    with pytest.raises(ValueError, match="labels.*`prediction_weight=0`"):
        model_trainer(student, teacher, rows, rows, max_steps=1, soft_label_weight=0.0).train()
    trainer = model_trainer(student, teacher, rows, rows, max_steps=1, prediction_weight=0.0)
    assert first_losses(trainer).keys() == {"loss", "loss_hidden_1", "loss_hidden_2", "loss_embedding"}


def test_masked_language_models_are_compared_at_labels(model_trainer):
    rows = masked_lm_rows()
    student = tiny_masked_lm()
    teacher = tiny_masked_lm(seed=1, hidden_size=24, num_hidden_layers=4)
    batch = pad(rows)
    with torch.no_grad():
        expected = divergence(teacher(**batch).logits, student(**batch).logits)[batch["labels"] != -100]
    fields = {"per_device_train_batch_size": 16, "temperature": 1.0, "max_steps": 1}
    losses = first_losses(model_trainer(student, teacher, rows, rows, **fields))
    assert losses["loss_soft"] == pytest.approx(expected.mean().item(), rel=1e-4)


class Images(torch.utils.data.Dataset):
    """Images that are read, as from files, when they are asked for."""

    def __init__(self):
        self.indices = []

    def __len__(self):
        return 24

    def __getitem__(self, index):
        self.indices.append(index)
        return {"pixel_values": torch.full((3, 8, 8), index / 24), "labels": index % 3}


def image_classifier(seed):
    torch.manual_seed(seed)
    sizes = {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 24}
    return ViTForImageClassification(ViTConfig(**sizes, image_size=8, patch_size=4, num_labels=3))


@pytest.mark.parametrize(
    ("processing", "cached"), slow_after(1, [(None, False), (ViTImageProcessorPil(), False), (None, True)])
)
def test_images_are_not_grouped_by_length(distillation_config, processing, cached):
    images = Images()
    args = distillation_config(cache_teacher_outputs=cached, train_sampling_strategy="group_by_length")
    models = (image_classifier(0), image_classifier(1))
    trainer = DistillationTrainer(*models, args, train_dataset=images, processing_class=processing)
    images.indices.clear()
    assert {"loss_soft", "loss_hard", "loss_hidden_2", "loss_embedding"} <= first_losses(trainer).keys()
    assert sorted(images.indices[-24:]) == list(range(24))
    # One image shows that there are no lengths.
    assert cached or images.indices[0] == 0 and len(images.indices) == 25


def masked_lm(width, seed):
    return tiny_masked_lm(seed, hidden_size=width)


@pytest.mark.parametrize(
    ("make_model", "labelled", "cached"), slow_after(1, [(bart, True, True), (masked_lm, False, False)])
)
def test_accumulation_of_uneven_batches_changes_nothing(model_trainer, make_model, labelled, cached):
    rows = masked_lm_rows()
    if not labelled:
        rows = without_labels(rows)
    runs = []
    for size, steps in ((8, 1), (2, 4)):
        fields = {"per_device_train_batch_size": size, "gradient_accumulation_steps": steps, "layer_mapping": "2:2"}
        fields |= {"soft_label_weight": 0.5 if labelled else 1.0, "cache_teacher_outputs": cached}
        trainer = model_trainer(make_model(16, 0), make_model(24, 1), rows, rows, **fields)
        assert {"loss_soft", "loss_hidden_2", "loss_embedding"} <= first_losses(trainer).keys()
        runs.append((training_logs(trainer), trainer.model.state_dict()))
    assert_same_training(runs, abs=1e-5)


def test_solvers_that_do_not_fit_are_refused(solver_trainer, processor):
    other_processor = MwpProcessor(tiny_tokenizer(), OutputVocabulary(constants=("2",)))
    with pytest.raises(ValueError, match="constants.*'1'.*'2'"):
        solver_trainer(teacher=tiny_solver(other_processor))
    larger = tiny_processor(indexed_numbers=True)
    with pytest.raises(ValueError, match=r"\b31 tokens.*\b47\b"):
        solver_trainer(teacher=tiny_solver(larger))
    with pytest.raises(ValueError, match="`BertForSequenceClassification`"):
        solver_trainer(teacher=tiny_classifier())
    with pytest.raises(ValueError, match="tokenizers.*`hidden_loss=None`.*`embedding_weight=0`"):
        solver_trainer(keywords={"teacher_processing_class": larger})
    with pytest.raises(ValueError, match="vocabulary"):
        solver_trainer(keywords={"teacher_processing_class": other_processor})
    solver_trainer(keywords={"teacher_processing_class": tiny_processor()})


def test_weights_shared_with_the_teacher_are_refused(solver_trainer, processor):
    teacher = tiny_solver(processor)
    with pytest.raises(ValueError, match="same model.*`copy.deepcopy`"):
        solver_trainer(teacher, teacher)
    student = tiny_solver(processor)
    student.encoder.embeddings = teacher.encoder.embeddings
    with pytest.raises(ValueError, match="word_embeddings.weight.*`copy.deepcopy`"):
        solver_trainer(student, teacher)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"layer_mapping": "1:5"}, "layer 5 of the teacher"),
        ({"layer_mapping": "3:4"}, "layer 3 of the student"),
        ({"hidden_weights": [1.0, 0.9, 1.0]}, r"`hidden_weights`.*\b3 .*\b2 "),
        ({"prediction_weight": 0.0, "hidden_loss": None, "embedding_weight": 0.0}, "weights.* 0"),
    ],
)
def test_arguments_that_do_not_fit_the_layers_are_refused(solver_trainer, fields, message):
    with pytest.raises(ValueError, match=message):
        solver_trainer(**fields)


@pytest.mark.parametrize(
    ("num_layers", "mapping", "weights"),
    [(3, [(1, 2), (2, 4), (3, 6)], [1.0, 0.9, 1.0]), (2, [(1, 3), (2, 6)], [1.0, 1.0])],
)
def test_the_papers_weights_are_for_three_layers(num_layers, mapping, weights, solver_trainer, processor):
    trainer = solver_trainer(tiny_solver(processor, num_layers), tiny_solver(processor, layers=6, seed=1))
    hidden = trainer.objectives[2]
    assert hidden.layers == mapping
    assert [*hidden.parts.values()] == weights


def test_classifiers_that_do_not_fit_are_refused(model_trainer):
    four_classes = tiny_classifier(1, num_labels=4)
    with pytest.raises(ValueError, match=r"\(2, 3\).*\(2, 4\).*`soft_label_weight=0`"):
        model_trainer(teacher=four_classes)
    model_trainer(teacher=four_classes, soft_label_weight=0.0)
    multi_label = tiny_classifier(1, problem_type="multi_label_classification")
    with pytest.raises(ValueError, match="several classes"):
        model_trainer(None, multi_label, without_labels(tiny_classifier_rows()), soft_label_weight=1.0)
    student = tiny_classifier(0, id2label={0: "no", 1: "maybe", 2: "yes"})
    teacher = tiny_classifier(1, id2label={0: "yes", 1: "maybe", 2: "no"})
    with pytest.raises(ValueError, match="'no', 'maybe', 'yes'.*'yes', 'maybe', 'no'.*`id2label`"):
        model_trainer(student, teacher)
    model_trainer(student, teacher, soft_label_weight=0.0)
    regression = {"num_labels": 1, "problem_type": "regression"}
    with pytest.raises(ValueError, match='`prediction_loss="mse"`'):
        model_trainer(tiny_classifier(**regression), tiny_classifier(1, **regression))


def test_models_that_embed_other_tokens_need_two_tokenizers(model_trainer):
    models = (tiny_classifier(vocab_size=80), tiny_classifier(1))
    with pytest.raises(ValueError, match=r"\b80 tokens.*\b40\b.*teacher_processing_class"):
        model_trainer(*models)
    # Spare rows do no harm where both tokenizers are known to be the same.
    tokenizers = {"processing_class": tiny_tokenizer(), "teacher_processing_class": tiny_tokenizer()}
    model_trainer(*models, keywords=tokenizers, max_steps=1).train()


def test_models_without_embeddings_of_tokens_fit():
    class Sounds(nn.Module):
        def get_input_embeddings(self):
            raise NotImplementedError

    check_embeddings(Sounds(), tiny_classifier())
    check_embeddings(tiny_classifier(), nn.Linear(2, 2))


@pytest.mark.parametrize(
    ("hidden_loss", "pool_statistics"), slow_after(1, [("cka", False), ("cka", True), ("mse", False)])
)
def test_rows_without_labels_are_evaluated_by_the_training_loss(hidden_loss, pool_statistics, model_trainer):
    rows = without_labels(tiny_classifier_rows(8))
    trainer = model_trainer(
        student=BertModel(tiny_bert_config()),
        teacher=BertModel(tiny_bert_config(hidden_size=24, num_hidden_layers=4)),
        rows=rows,
        eval_rows=rows,
        prediction_weight=0,
        embedding_weight=0,
        hidden_loss=hidden_loss,
        pool_statistics=pool_statistics,
        gradient_accumulation_steps=2,
        layer_mapping="1:2,2:4",
        hidden_weights=[1.0, 0.5],
        cache_teacher_outputs=True,
        per_device_eval_batch_size=4,
    )
    loss = CKALoss() if hidden_loss == "cka" else HiddenMSELoss()

    @torch.no_grad()
    def expected():
        total = 0.0
        for batch in (pad(rows[:4]), pad(rows[4:])):
            student_states = trainer.model.eval()(**batch, output_hidden_states=True).hidden_states
            teacher_states = trainer.teacher_model(**batch, output_hidden_states=True).hidden_states
            for student_layer, teacher_layer, weight in ((1, 2, 1.0), (2, 4, 0.5)):
                states = student_states[student_layer]
                if hidden_loss == "mse":
                    states = trainer.projections.module[f"hidden_{student_layer}"](states)
                total += weight * loss(states, teacher_states[teacher_layer], batch["attention_mask"]).item()
        return total / 2

    assert trainer.evaluate()["eval_loss"] == pytest.approx(expected(), rel=1e-5)
    trainer.train()
    assert trainer.evaluate()["eval_loss"] == pytest.approx(expected(), rel=1e-5)
