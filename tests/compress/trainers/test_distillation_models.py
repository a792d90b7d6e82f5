"""Distillation of models that are no solvers, and of models that do not fit."""

import copy

import pytest
import torch
from accelerate import Accelerator, DistributedType
from torch import nn
from transformers import (
    BatchEncoding,
    BertModel,
    DistilBertConfig,
    DistilBertForSequenceClassification,
    ViTConfig,
    ViTForImageClassification,
    ViTImageProcessorPil,
)

from hf_mwp.compress.distillation.objectives import HardLabels, HiddenStates, SoftLabels
from hf_mwp.compress.losses import CKALoss, HiddenMSELoss
from hf_mwp.compress.models.model_kind import check_embeddings
from hf_mwp.compress.trainers import DistillationTrainer
from hf_mwp.runtime.output_vocabulary import OutputVocabulary
from hf_mwp.solver.batches.mwp_processor import MwpProcessor
from tests.compress.trainers.distilling import assert_same_training, bart, copy_of, pad, training_logs, unchanged
from tests.tiny import (
    tiny_bert_config,
    tiny_classifier,
    tiny_classifier_rows,
    tiny_masked_lm,
    tiny_processor,
    tiny_solver,
    tiny_tokenizer,
)


def test_classifiers(others):
    trainer = others(warmup_steps=0, eval_strategy="epoch", num_train_epochs=2)
    assert trainer.args.metric_for_best_model is None
    teacher = copy_of(trainer.teacher_model)
    student = copy_of(trainer.model)
    trainer.train()
    # Keys' biases shift all scores of a softmax alike: their gradient is zero but for rounding.
    for name, value in trainer.model.named_parameters():
        assert name.endswith("key.bias") or not torch.equal(value, student[name]), name
    assert unchanged(trainer.teacher_model, teacher)
    assert {"loss_soft", "loss_hard", "loss_hidden_1", "loss_hidden_2", "loss_embedding"} <= set(
        training_logs(trainer)[0]
    )
    metrics = trainer.evaluate()
    assert metrics["eval_loss"] > 0 and "eval_answer_accuracy" not in metrics


def test_rows_may_be_what_a_tokenizer_returns(others):
    rows = tiny_classifier_rows()
    logs = []
    for given in (rows, [BatchEncoding(row) for row in rows]):
        trainer = others(rows=given, cache_teacher_outputs=True)
        trainer.train()
        logs.append(training_logs(trainer)[0]["loss"])
    assert logs[0] == logs[1]


def accuracy(prediction):
    return {"accuracy": float((prediction.predictions.argmax(-1) == prediction.label_ids).mean())}


def test_classifiers_with_metrics_and_best_checkpoint(others):
    fields = {
        "eval_strategy": "epoch",
        "save_strategy": "epoch",
        "load_best_model_at_end": True,
        "num_train_epochs": 2,
    }
    trainer = others(keywords={"compute_metrics": accuracy}, metric_for_best_model="accuracy", **fields)
    trainer.train()
    assert trainer.state.best_metric == max(
        e["eval_accuracy"] for e in trainer.state.log_history if "eval_accuracy" in e
    )
    # Logits alone are gathered: neither hidden states nor what the projections make of them.
    assert trainer.predict(tiny_classifier_rows(6, seed=1)).predictions.shape == (6, 3)
    assert others(**fields).args.metric_for_best_model == "loss"


def test_predictions_stand_in_the_order_of_the_rows(others):
    trainer = others()
    rows = tiny_classifier_rows(16)
    with torch.no_grad():
        expected = trainer.model.eval()(**pad(rows)).logits
    torch.testing.assert_close(torch.tensor(trainer.predict(rows).predictions), expected)


def test_labels_are_not_needed_for_soft_labels(others):
    rows = [{name: value for name, value in row.items() if name != "labels"} for row in tiny_classifier_rows()]
    trainer = others(rows=rows, soft_label_weight=1.0, max_steps=2)
    trainer.train()
    assert "loss_hard" not in training_logs(trainer)[0]
    with pytest.raises(ValueError, match="labels.*`soft_label_weight=1`"):
        others(rows=rows, max_steps=2).train()


def test_training_rows_without_labels_and_evaluation_rows_with_labels(others):
    rows = [{name: value for name, value in row.items() if name != "labels"} for row in tiny_classifier_rows()]
    keywords = {"compute_metrics": accuracy}
    trainer = others(rows=rows, soft_label_weight=1.0, max_steps=1, eval_strategy="steps", keywords=keywords)
    trainer.train()
    batch = pad(tiny_classifier_rows(6, seed=1))
    with torch.no_grad():
        output = trainer.model.eval()(**batch)
    metrics = trainer.evaluate()
    assert metrics["eval_loss"] == pytest.approx(output.loss.item(), rel=1e-5)
    assert metrics["eval_accuracy"] == (output.logits.argmax(-1) == batch["labels"]).double().mean().item()
    # Rows without labels are evaluated by the training loss; only logits are gathered.
    found = trainer.predict(rows[:6])
    assert found.predictions.shape == (6, 3) and found.label_ids is None and "test_loss" in found.metrics


@pytest.mark.parametrize("loss", ["kd", "dkd"])
def test_rows_with_the_label_minus_100_have_no_hard_label(others, loss):
    rows = tiny_classifier_rows(8)
    fields = {"prediction_loss": loss, "max_steps": 1, "logging_steps": 1}
    for row in rows[:2]:
        row["labels"] = -100
    # A teacher that is sure of its answers, so that the loss is large compared with the rounding of fp32.
    teacher = tiny_classifier(seed=1)
    runs = []
    teacher.classifier.weight.data *= 50
    for given in (rows, rows[2:] if loss == "dkd" else rows):
        steps = {"per_device_train_batch_size": 1, "gradient_accumulation_steps": 8} if given is rows else {}
        trainer = others(None, teacher, given, hidden_loss=None, embedding_weight=0.0, **fields, **steps)
        trainer.train()
        runs.append(training_logs(trainer)[0])
    with torch.no_grad():
        hard = tiny_classifier()(**pad(rows)).loss.item()
    assert runs[0]["loss_hard"] == pytest.approx(hard, rel=1e-5)
    assert runs[0]["loss_soft"] == pytest.approx(runs[1]["loss_soft"], rel=1e-4)


@pytest.mark.parametrize(("cached", "compiled"), [(False, False), (True, False), (False, True)])
@torch.compiler.set_stance("force_eager")
def test_inputs_that_the_student_does_not_read_reach_the_teacher(others, cached, compiled):
    def pad_types(rows):
        types = [torch.tensor(row["token_type_ids"]) for row in rows]
        return pad(rows) | {"token_type_ids": nn.utils.rnn.pad_sequence(types, batch_first=True)}

    rows = [{**row, "token_type_ids": [0, *[1] * (len(row["input_ids"]) - 1)]} for row in tiny_classifier_rows(8)]
    sizes = {"vocab_size": 40, "dim": 16, "hidden_dim": 24, "n_layers": 2, "n_heads": 2, "num_labels": 3}
    dropouts = {"dropout": 0.0, "attention_dropout": 0.0, "seq_classif_dropout": 0.0}
    torch.manual_seed(0)
    student = DistilBertForSequenceClassification(DistilBertConfig(**sizes, **dropouts))
    seen = []
    student.register_forward_pre_hook(lambda module, args, kwargs: seen.extend(kwargs), with_kwargs=True)
    teacher = tiny_classifier(1, initializer_range=0.5)
    with torch.no_grad():
        p = teacher.eval()(**pad_types(rows)).logits.log_softmax(-1)
        q = student.eval()(**pad(rows)).logits.log_softmax(-1)
    fields = {"torch_compile": compiled, "cache_teacher_outputs": cached}
    trainer = others(student, teacher, rows, rows, temperature=1.0, max_steps=1, **fields)
    trainer.data_collator = pad_types
    trainer.train()
    trainer.evaluate()
    expected = (p.exp() * (p - q)).sum(-1).mean().item()
    assert training_logs(trainer)[0]["loss_soft"] == pytest.approx(expected, rel=1e-2 if cached else 1e-4)
    assert "labels" in seen and "token_type_ids" not in seen


def elsewhere(model):
    """Puts a model on another device than the batches, until it is moved."""
    source = copy.deepcopy(model)
    model.to("meta")

    def to(device):
        for ours, theirs in zip(model.modules(), source.modules(), strict=True):
            ours._parameters.update(theirs._parameters)
            ours._buffers.update(theirs._buffers)
        return model

    model.to = to
    return model


def test_models_are_on_the_device_of_the_batches(others, monkeypatch):
    # `Trainer` moves the student later, and Accelerate does not move models with FSDP.
    rows = [{name: row[name] for name in ("input_ids", "attention_mask")} for row in tiny_classifier_rows()]
    expected = others(rows=rows, eval_rows=rows, soft_label_weight=1.0).evaluate()["eval_loss"]
    monkeypatch.setattr(Accelerator, "distributed_type", DistributedType.FSDP)
    models = [
        elsewhere(model) for model in (tiny_classifier(), tiny_classifier(1, hidden_size=24, num_hidden_layers=4))
    ]
    trainer = others(*models, rows, rows, soft_label_weight=1.0, bf16_full_eval=True)
    monkeypatch.undo()
    del trainer.model.to
    assert trainer.evaluate()["eval_loss"] == pytest.approx(expected, rel=0.02)


class Recurrent(nn.Module):
    """A student that is not a model of Transformers."""

    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(40, 16)
        self.layer = nn.GRU(16, 16, batch_first=True)
        self.classifier = nn.Linear(16, 3)

    def forward(self, input_ids, labels=None):
        logits = self.classifier(self.layer(self.embedding(input_ids))[0].mean(1))
        loss = {} if labels is None else {"loss": nn.functional.cross_entropy(logits, labels)}
        return {**loss, "logits": logits}


@pytest.mark.parametrize("cached", [False, True])
def test_modules_of_torch(others, cached):
    fields = {"hidden_loss": None, "embedding_weight": 0.0, "cache_teacher_outputs": cached}
    trainer = others(Recurrent(), keywords={"compute_metrics": accuracy}, **fields)
    trainer.train()
    assert {"loss_soft", "loss_hard"} <= {*training_logs(trainer)[0]} and "eval_accuracy" in trainer.evaluate()


def test_encoders_without_predictions_learn_layers(others):
    rows = [{name: value for name, value in row.items() if name != "labels"} for row in tiny_classifier_rows()]
    student = tiny_classifier(seed=0).base_model
    teacher = tiny_classifier(seed=1, num_hidden_layers=4).base_model
    with pytest.raises(ValueError, match="logits.*`prediction_weight=0`"):
        others(student, teacher, rows, rows, max_steps=1).train()
    with pytest.raises(ValueError, match="labels.*`prediction_weight=0`"):
        others(student, teacher, rows, rows, max_steps=1, soft_label_weight=0.0).train()
    trainer = others(student, teacher, rows, rows, max_steps=1, prediction_weight=0.0)
    trainer.train()
    losses = {name for name in training_logs(trainer)[0] if name.startswith("loss_")}
    assert losses == {"loss_hidden_1", "loss_hidden_2", "loss_embedding"}


def test_masked_language_models_compare_where_labels_are(others):
    rows = tiny_classifier_rows()
    for row in rows:
        row["labels"] = [token if place % 3 == 0 else -100 for place, token in enumerate(row["input_ids"])]
    teacher = tiny_masked_lm(seed=1, hidden_size=24, num_hidden_layers=4)
    fields = {"per_device_train_batch_size": 16, "temperature": 1.0, "max_steps": 1}
    trainer = others(tiny_masked_lm(), teacher, rows, rows, **fields)
    trainer.train()
    batch = pad(rows)
    with torch.no_grad():
        p = teacher(**batch).logits.log_softmax(-1)[batch["labels"] != -100]
        q = tiny_masked_lm()(**batch).logits.log_softmax(-1)[batch["labels"] != -100]
    expected = (p.exp() * (p - q)).sum(-1).mean().item()
    assert training_logs(trainer)[0]["loss_soft"] == pytest.approx(expected, rel=1e-4)


def image_classifier(seed, **sizes):
    torch.manual_seed(seed)
    defaults = {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 24}
    config = ViTConfig(**(defaults | sizes), image_size=8, patch_size=4, num_labels=3)
    return ViTForImageClassification(config)


class Images(torch.utils.data.Dataset):
    """Images that are read, as from files, when they are asked for."""

    def __init__(self):
        self.read = []

    def __len__(self):
        return 24

    def __getitem__(self, index):
        self.read.append(index)
        return {"pixel_values": torch.full((3, 8, 8), index / 24), "labels": index % 3}


@pytest.mark.parametrize("cached", [False, True])
@pytest.mark.parametrize("processing", [None, ViTImageProcessorPil()])
def test_images_are_not_grouped_by_length(distillation_config, processing, cached):
    teacher = image_classifier(1, hidden_size=24, num_hidden_layers=4)
    orders = []
    for strategy in ("group_by_length", "random"):
        trainer = DistillationTrainer(
            image_classifier(0),
            teacher,
            distillation_config(cache_teacher_outputs=cached, train_sampling_strategy=strategy),
            train_dataset=(images := Images()),
            eval_dataset=Images(),
            processing_class=processing,
        )
        setup = len(images.read)
        trainer.train()
        orders.append(images.read[setup:])
        assert {"loss_soft", "loss_hard", "loss_hidden_2", "loss_embedding"} <= {*training_logs(trainer)[0]}
        assert trainer.evaluate()["eval_loss"] > 0
    assert orders[0][-24:] == orders[1][-24:]
    # One image shows that there are no lengths.
    assert cached or orders[0] == [0, *orders[1]]


def masked_lm(width, seed):
    return tiny_masked_lm(seed, hidden_size=width)


@pytest.mark.parametrize("cached", [False, True])
@pytest.mark.parametrize(("model", "labelled"), [(masked_lm, True), (masked_lm, False), (bart, True)])
def test_accumulation_changes_nothing(others, model, labelled, cached):
    rows = tiny_classifier_rows()
    for index, row in enumerate(rows):
        # One label in some rows, up to all in others.
        row["labels"] = row["input_ids"][: 1 + index % 4] + [-100] * (len(row["input_ids"]) - 1 - index % 4)
        if not labelled:
            del row["labels"]
    runs = []
    for size, steps in ((8, 1), (2, 4)):
        fields = {"per_device_train_batch_size": size, "gradient_accumulation_steps": steps}
        fields |= {"soft_label_weight": 0.5 if labelled else 1.0, "cache_teacher_outputs": cached}
        trainer = others(model(16, 0), model(24, 1), rows, rows, layer_mapping="2:2", **fields)
        trainer.train()
        # The gradient of keys' biases is zero but for rounding, which Adam enlarges.
        weights = {n: v for n, v in trainer.model.state_dict().items() if not n.endswith("c_attn.bias")}
        runs.append((training_logs(trainer), weights))
    assert_same_training(runs, abs=1e-5)


def test_encoder_decoder_models_compare_the_encoders_states(others):
    rows = [{**row, "labels": row["input_ids"][:4]} for row in tiny_classifier_rows()]
    trainer = others(bart(16, 0), bart(24, 1), rows, rows, max_steps=2, layer_mapping="2:2")
    trainer.train()
    assert {"loss_soft", "loss_hidden_2", "loss_embedding"} <= set(training_logs(trainer)[0])


def test_losses_may_be_given_as_objects(others):
    class MeanWidth(nn.Module):
        needs_equal_width = False

        def forward(self, student, teacher, mask=None):
            return (student.mean() - teacher.mean()).square()

    class Distance(nn.Module):
        def forward(self, student, teacher, mask=None):
            return (student - teacher).square().mean()

    objectives = [SoftLabels(loss=Distance()), HardLabels(), HiddenStates(MeanWidth())]
    trainer = others(keywords={"objectives": objectives}, max_steps=1)
    assert len(trainer.projections) == 0
    trainer.train()
    regression = {"num_labels": 1, "problem_type": "regression"}
    rows = [{**row, "labels": float(row["labels"])} for row in tiny_classifier_rows()]
    models = tiny_classifier(**regression), tiny_classifier(1, **regression)
    others(*models, rows, keywords={"objectives": [SoftLabels(loss=Distance())]}, max_steps=1).train()
    with pytest.raises(ValueError, match='`prediction_loss="mse"`'):
        others(*models, rows)


def test_solvers_that_do_not_fit(solvers, processor):
    other = MwpProcessor(tiny_tokenizer(), OutputVocabulary(constants=("2",)))
    with pytest.raises(ValueError, match="constants.*'1'.*'2'"):
        solvers(teacher=tiny_solver(other))
    larger = tiny_processor(indexed_numbers=True)
    with pytest.raises(ValueError, match=r"\b31 tokens.*\b47\b"):
        solvers(teacher=tiny_solver(larger))
    with pytest.raises(ValueError, match="`BertForSequenceClassification`"):
        solvers(teacher=tiny_classifier())
    with pytest.raises(ValueError, match="tokenizers.*`hidden_loss=None`.*`embedding_weight=0`"):
        solvers(keywords={"teacher_processing_class": larger})
    with pytest.raises(ValueError, match="vocabulary"):
        solvers(keywords={"teacher_processing_class": other})
    solvers(keywords={"teacher_processing_class": tiny_processor()})


def test_shared_weights(solvers, processor):
    teacher = tiny_solver(processor)
    with pytest.raises(ValueError, match="same model.*`copy.deepcopy`"):
        solvers(teacher, teacher)
    student = tiny_solver(processor)
    student.encoder.embeddings = teacher.encoder.embeddings
    with pytest.raises(ValueError, match="word_embeddings.weight.*`copy.deepcopy`"):
        solvers(student, teacher)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"layer_mapping": "1:5"}, "layer 5 of the teacher"),
        ({"layer_mapping": "3:4"}, "layer 3 of the student"),
        ({"hidden_weights": [1.0, 0.9, 1.0]}, r"`hidden_weights`.*\b3 .*\b2 "),
        ({"prediction_weight": 0.0, "hidden_loss": None, "embedding_weight": 0.0}, "weights.* 0"),
    ],
)
def test_impossible_arguments(solvers, fields, message):
    with pytest.raises(ValueError, match=message):
        solvers(**fields)


def test_the_papers_weights_are_for_three_layers(solvers, processor):
    trainer = solvers(tiny_solver(processor, layers=3), tiny_solver(processor, layers=6, seed=1))
    hidden = next(each for each in trainer.objectives if each.name == "hidden")
    assert hidden.layers == [(1, 2), (2, 4), (3, 6)] and [*hidden.parts.values()] == [1.0, 0.9, 1.0]
    assert [*next(each for each in solvers().objectives if each.name == "hidden").parts.values()] == [1.0, 1.0]


def test_other_models_that_do_not_fit(others):
    with pytest.raises(ValueError, match=r"\(2, 3\).*\(2, 4\).*`soft_label_weight=0`"):
        others(teacher=tiny_classifier(1, num_labels=4))
    others(teacher=tiny_classifier(1, num_labels=4), soft_label_weight=0.0)
    with pytest.raises(ValueError, match="several classes"):
        bare = [{name: row[name] for name in ("input_ids", "attention_mask")} for row in tiny_classifier_rows()]
        others(None, tiny_classifier(1, problem_type="multi_label_classification"), bare, soft_label_weight=1.0)
    names = [dict(enumerate(("no", "maybe", "yes"))), dict(enumerate(("yes", "maybe", "no")))]
    models = [tiny_classifier(seed, id2label=each) for seed, each in enumerate(names)]
    with pytest.raises(ValueError, match="'no', 'maybe', 'yes'.*'yes', 'maybe', 'no'.*`id2label`"):
        others(*models)
    others(*models, soft_label_weight=0.0)
    with pytest.raises(ValueError, match=r"\b4 and .*\b5\b"):
        others(student=tiny_classifier(num_hidden_layers=5))
    with pytest.raises(TypeError, match="teacher_model"):
        DistillationTrainer(model=tiny_classifier(), teacher_model="some/model")
    with pytest.raises(ValueError, match="`model_init`"):
        DistillationTrainer(teacher_model=tiny_classifier(), model_init=tiny_classifier)
    with pytest.raises(ValueError, match="compute_loss_func"):
        others(keywords={"compute_loss_func": lambda *args, **kwargs: None})


def test_models_that_embed_other_tokens(others):
    models = tiny_classifier(vocab_size=80), tiny_classifier(1)
    with pytest.raises(ValueError, match=r"\b80 tokens.*\b40\b.*teacher_processing_class"):
        others(*models)
    # Spare rows do no harm where both tokenizers are known to be the same.
    tokenizers = {"processing_class": tiny_tokenizer(), "teacher_processing_class": tiny_tokenizer()}
    others(*models, keywords=tokenizers, max_steps=1).train()


def test_models_without_embeddings_of_tokens_are_no_models_of_other_tokens():
    class Sounds(nn.Module):
        def get_input_embeddings(self):
            raise NotImplementedError

    check_embeddings(Sounds(), tiny_classifier())
    check_embeddings(tiny_classifier(), nn.Linear(2, 2))


@pytest.mark.parametrize("hidden_loss", ["cka", "mse"])
def test_rows_without_labels_are_evaluated_by_the_loss_that_is_trained_on(hidden_loss, others):
    rows = [{name: row[name] for name in ("input_ids", "attention_mask")} for row in tiny_classifier_rows(8)]
    trainer = others(
        student=BertModel(tiny_bert_config()),
        teacher=BertModel(tiny_bert_config(hidden_size=24, num_hidden_layers=4)),
        rows=rows,
        eval_rows=rows,
        prediction_weight=0,
        embedding_weight=0,
        hidden_loss=hidden_loss,
        layer_mapping="1:2,2:4",
        hidden_weights=[1.0, 0.5],
        cache_teacher_outputs=True,
        per_device_eval_batch_size=4,
    )
    models = [model.eval() for model in (trainer.model, trainer.teacher_model)]
    loss = {"cka": CKALoss(), "mse": HiddenMSELoss()}[hidden_loss]

    @torch.no_grad()
    def expected():
        losses = []
        for batch in (pad(rows[:4]), pad(rows[4:])):
            ours, theirs = (list(model(**batch, output_hidden_states=True).hidden_states) for model in models)
            if hidden_loss == "mse":
                ours[1:] = [trainer.projections.module[f"hidden_{i}"](ours[i]) for i in (1, 2)]
            losses += [w * loss(ours[i], theirs[j], batch["attention_mask"]) for i, j, w in ((1, 2, 1.0), (2, 4, 0.5))]
        return float(sum(losses)) / 2

    assert trainer.evaluate()["eval_loss"] == pytest.approx(expected(), rel=1e-5)
    trainer.train()
    assert trainer.evaluate()["eval_loss"] == pytest.approx(expected(), rel=1e-5)
