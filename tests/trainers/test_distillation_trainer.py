import copy
import logging
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file
from torch import nn
from transformers import (
    AutoModel,
    BartConfig,
    BartForConditionalGeneration,
    BertForSequenceClassification,
    TrainerCallback,
)

from hf_mwp.data.collator import MwpCollator
from hf_mwp.data.mwp_processor import MwpProcessor
from hf_mwp.data.output_vocabulary import OutputVocabulary
from hf_mwp.distillation import cut_student
from hf_mwp.trainers import DistillationConfig, DistillationTrainer
from tests.tiny import (
    tiny_classifier,
    tiny_classifier_rows,
    tiny_masked_lm,
    tiny_problems,
    tiny_processor,
    tiny_rows,
    tiny_solver,
    tiny_tokenizer,
)


PROJECTIONS = "distillation_projections"


@pytest.fixture(scope="module")
def processor():
    return tiny_processor()


@pytest.fixture
def config(tmp_path):
    def make(**fields):
        defaults = {"output_dir": str(tmp_path), "use_cpu": True, "report_to": "none", "disable_tqdm": True}
        defaults |= {
            "save_strategy": "no",
            "per_device_train_batch_size": 8,
            "num_train_epochs": 1,
            "logging_steps": 1,
        }
        return DistillationConfig(**(defaults | fields))

    return make


@pytest.fixture
def solvers(processor, config):
    """Makes a trainer of a narrow student with a teacher twice as deep."""

    def make(student=None, teacher=None, keywords=None, **fields):
        keywords = {"processing_class": processor, "train_dataset": tiny_rows()} | (keywords or {})
        return DistillationTrainer(
            model=tiny_solver(processor) if student is None else student,
            teacher_model=tiny_solver(processor, layers=4, hidden_size=24, seed=1) if teacher is None else teacher,
            args=config(**fields),
            eval_dataset=tiny_rows(12, seed=1),
            **keywords,
        )

    return make


def pad(rows):
    longest = max(len(row["input_ids"]) for row in rows)

    def column(name, padding):
        return torch.tensor([row[name] + [padding] * (longest - len(row[name])) for row in rows])

    batch = {"input_ids": column("input_ids", 0), "attention_mask": column("attention_mask", 0)}
    if "labels" in rows[0]:
        labels = [row["labels"] for row in rows]
        batch["labels"] = column("labels", -100) if isinstance(labels[0], list) else torch.tensor(labels)
    return batch


@pytest.fixture
def others(config):
    """Makes a trainer of models that are no solvers, by default classifiers of two widths."""

    def make(student=None, teacher=None, rows=None, eval_rows=None, keywords=None, **fields):
        return DistillationTrainer(
            model=tiny_classifier(seed=0) if student is None else student,
            teacher_model=tiny_classifier(seed=1, hidden_size=24, num_hidden_layers=4) if teacher is None else teacher,
            args=config(**fields),
            data_collator=pad,
            train_dataset=tiny_classifier_rows() if rows is None else rows,
            eval_dataset=tiny_classifier_rows(6, seed=1) if eval_rows is None else eval_rows,
            **(keywords or {}),
        )

    return make


def copy_of(module):
    return {name: value.detach().clone() for name, value in module.state_dict().items()}


def unchanged(module, before):
    return all(torch.equal(value, before[name]) for name, value in module.state_dict().items())


def training_logs(trainer):
    return [entry for entry in trainer.state.log_history if "loss" in entry]


# Training


def test_student_and_projections_change_and_the_teacher_does_not(solvers):
    trainer = solvers(warmup_steps=0)
    teacher, student = copy_of(trainer.teacher_model), copy_of(trainer.model)
    projections = copy_of(trainer.projections.module)
    trainer.train()
    for name, value in trainer.model.state_dict().items():
        assert not torch.equal(value, student[name]), name
    assert set(projections) == {"hidden_1.weight", "hidden_2.weight", "embedding.weight"}
    for name, value in trainer.projections.module.state_dict().items():
        assert not torch.equal(value, projections[name]), name
    assert unchanged(trainer.teacher_model, teacher)
    assert not trainer.teacher_model.training
    assert not any(parameter.requires_grad for parameter in trainer.teacher_model.parameters())


def test_projections_change_after_one_step_at_their_own_rate(solvers):
    trainer = solvers(max_steps=1, warmup_steps=0, projection_learning_rate=1e-2, weight_decay=0.0)
    before = copy_of(trainer.projections.module)
    trainer.train()
    for name, value in trainer.projections.module.state_dict().items():
        # The first step of Adam is as large as the rate.
        assert (value - before[name]).abs().max().item() == pytest.approx(1e-2, rel=1e-3), name


def test_projections_leave_the_student(solvers, tmp_path):
    trainer = solvers()
    names = set(trainer.model.state_dict())
    trainer.train()
    assert set(trainer.model.state_dict()) == names
    assert not trainer.model._forward_hooks and not hasattr(trainer.model, PROJECTIONS)
    assert not any(PROJECTIONS in key for key in trainer.model._keys_to_ignore_on_save)
    trainer.save_model()
    assert set(load_file(tmp_path / "model.safetensors")) <= names
    assert not list(tmp_path.glob(f"{PROJECTIONS}*"))


def test_projections_leave_the_student_after_an_error(solvers):
    class Fails(TrainerCallback):
        def on_step_end(self, *args, **kwargs):
            raise RuntimeError("out of coffee")

    trainer = solvers(keywords={"callbacks": [Fails()]})
    with pytest.raises(RuntimeError, match="coffee"):
        trainer.train()
    assert not hasattr(trainer.model, PROJECTIONS) and not trainer.model._forward_hooks


def test_training_again_goes_on_with_the_same_projections(solvers):
    trainer = solvers(max_steps=1, warmup_steps=0)
    trainer.train()
    first = copy_of(trainer.projections.module)
    trainer.train()
    assert not unchanged(trainer.projections.module, first)


def test_checkpoints_load_as_plain_models_and_the_best_one_is_found(solvers, caplog, monkeypatch):
    fields = {"save_strategy": "epoch", "eval_strategy": "epoch", "load_best_model_at_end": True}
    trainer = solvers(num_train_epochs=2, **fields)
    assert trainer.args.metric_for_best_model == "answer_accuracy" and trainer.args.greater_is_better
    monkeypatch.setattr(logging.getLogger("transformers"), "propagate", True)
    with caplog.at_level("WARNING"):
        trainer.train()
    assert "missing keys" not in caplog.text and "unexpected keys" not in caplog.text
    checkpoint = Path(trainer.state.best_model_checkpoint)
    model, info = AutoModel.from_pretrained(checkpoint, output_loading_info=True)
    assert not info["missing_keys"] and not info["unexpected_keys"] and not info["mismatched_keys"]
    assert unchanged(model, trainer.model.state_dict())
    assert set(load_file(checkpoint / f"{PROJECTIONS}.safetensors")) == set(trainer.projections.module.state_dict())


def test_resuming_needs_the_projections(solvers, tmp_path):
    trainer = solvers(save_strategy="steps", save_steps=2)
    trainer.train()
    checkpoint = tmp_path / "checkpoint-2"
    with pytest.raises(ValueError, match="other projections"):
        solvers(layer_mapping="2:4").train(resume_from_checkpoint=str(checkpoint))
    (checkpoint / f"{PROJECTIONS}.safetensors").unlink()
    with pytest.raises(ValueError, match="written without these projections"):
        solvers().train(resume_from_checkpoint=str(checkpoint))


def test_equal_widths_need_no_projections(solvers, processor, tmp_path):
    teacher = tiny_solver(processor, layers=4, seed=1)
    trainer = solvers(cut_student(teacher, 2), teacher, save_strategy="steps", save_steps=2)
    trainer.train()
    assert len(trainer.projections) == 0
    assert not (tmp_path / "checkpoint-2" / f"{PROJECTIONS}.safetensors").exists()
    assert "loss_hidden_2" in training_logs(trainer)[0]


def test_a_student_equal_to_its_teacher_has_nothing_to_learn_from_it(solvers, processor):
    teacher = tiny_solver(processor, layers=2)
    trainer = solvers(copy.deepcopy(teacher), teacher, soft_label_weight=1.0, max_steps=1)
    trainer.train()
    (entry,) = training_logs(trainer)
    assert entry["loss"] == pytest.approx(0.0, abs=1e-6) and entry["loss_hidden_1"] == 0.0


# The loss


def test_parts_are_those_of_the_formula(solvers, processor):
    fields = {"temperature": 3.0, "soft_label_weight": 0.3, "hidden_weights": [2.0, 0.5], "embedding_weight": 0.7}
    trainer = solvers(learning_rate=0.0, max_steps=1, per_device_train_batch_size=24, prediction_weight=0.9, **fields)
    trainer.train()
    (entry,) = training_logs(trainer)

    columns = [processor.encode([problem], with_labels=True) for problem in tiny_problems()]
    batch = MwpCollator(processor)([{name: values[0] for name, values in each.items()} for each in columns])
    student, teacher = tiny_solver(processor), trainer.teacher_model
    with torch.no_grad():
        ours = student(**batch, output_hidden_states=True)
        theirs = teacher(**batch, output_hidden_states=True)
    soft = 0.0
    for row in range(24):
        for node in range(batch["labels"].shape[1]):
            if batch["labels"][row, node] != -100:
                p = (theirs.logits[row, node] / 3.0).softmax(-1)
                q = (ours.logits[row, node] / 3.0).softmax(-1)
                soft += 9 * sum(a * (a / b).log() for a, b in zip(p, q, strict=True) if a > 0).item() / 24
    assert entry["loss_soft"] == pytest.approx(soft, rel=1e-4)
    assert entry["loss_hard"] == pytest.approx(ours.loss.item(), rel=1e-5)
    valid = batch["attention_mask"].bool()
    parts = {"embedding": (0, 0), "hidden_1": (1, 2), "hidden_2": (2, 4)}
    # Rate 0 of the encoder is not that of the projections, but these move after the first loss only.
    initial = solvers().projections
    for name, (s, t) in parts.items():
        projected = initial.module[name](ours.hidden_states[s])[valid]
        expected = (projected - theirs.hidden_states[t][valid]).square().mean().item()
        assert entry[f"loss_{name}"] == pytest.approx(expected, rel=1e-4), name
    total = 0.9 * (0.3 * entry["loss_soft"] + 0.7 * entry["loss_hard"]) + 0.7 * entry["loss_embedding"]
    total += 2.0 * entry["loss_hidden_1"] + 0.5 * entry["loss_hidden_2"]
    assert entry["loss"] == pytest.approx(total, rel=1e-5)


def test_parts_without_weight_are_not_computed(solvers):
    trainer = solvers(soft_label_weight=0.0, embedding_weight=0.0, layer_mapping="2:4", max_steps=1)
    trainer.train()
    assert {name for name in training_logs(trainer)[0] if name.startswith("loss")} == {
        "loss",
        "loss_hard",
        "loss_hidden_2",
    }
    trainer = solvers(prediction_weight=0.0, hidden_loss=None, max_steps=1)
    trainer.train()
    assert {name for name in training_logs(trainer)[0] if name.startswith("loss")} == {"loss", "loss_embedding"}


def test_logged_parts_are_means_over_steps_and_accumulated_batches(solvers):
    fields = {"learning_rate": 0.0, "decoder_learning_rate": 0.0, "projection_learning_rate": 0.0}
    every = solvers(per_device_train_batch_size=4, **fields)
    every.train()
    once = solvers(per_device_train_batch_size=4, gradient_accumulation_steps=2, logging_steps=3, **fields)
    once.train()
    (summary,), steps = training_logs(once), training_logs(every)
    assert len(steps) == 6
    assert summary["loss_hard"] == pytest.approx(sum(entry["loss_hard"] for entry in steps) / 6, rel=1e-5)
    assert summary["loss"] == pytest.approx(sum(entry["loss"] for entry in steps) / 6, rel=1e-2)


@pytest.mark.parametrize("kind", ["solvers", "others"])
def test_accumulation_changes_nothing(kind, request):
    make, runs = request.getfixturevalue(kind), []
    for size, steps in ((8, 1), (4, 2)):
        trainer = make(per_device_train_batch_size=size, gradient_accumulation_steps=steps, num_train_epochs=2)
        trainer.train()
        runs.append((training_logs(trainer), trainer.model.state_dict()))
    (logs, weights), (other_logs, other_weights) = runs
    for ours, theirs in zip(logs, other_logs, strict=True):
        assert ours == pytest.approx(theirs, rel=1e-4, abs=1e-6)
    for name, value in weights.items():
        torch.testing.assert_close(value, other_weights[name], rtol=1e-4, atol=1e-5)


def test_evaluation_is_the_students_own(solvers):
    trainer = solvers(eval_strategy="epoch")
    trainer.train()
    within = next(entry for entry in trainer.state.log_history if "eval_loss" in entry)
    after = trainer.evaluate()
    assert within["eval_loss"] == after["eval_loss"]
    assert {"eval_answer_accuracy", "eval_answer_accuracy_low"} <= set(after)


# Other models


def test_classifiers(others):
    trainer = others(warmup_steps=0, eval_strategy="epoch", num_train_epochs=2)
    assert trainer.args.metric_for_best_model is None
    teacher, student = copy_of(trainer.teacher_model), copy_of(trainer.model)
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


def test_classifiers_with_metrics_and_best_checkpoint(others):
    def accuracy(prediction):
        return {"accuracy": float((prediction.predictions.argmax(-1) == prediction.label_ids).mean())}

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


def test_labels_are_not_needed_for_soft_labels(others):
    rows = [{name: value for name, value in row.items() if name != "labels"} for row in tiny_classifier_rows()]
    trainer = others(rows=rows, soft_label_weight=1.0, max_steps=2)
    trainer.train()
    assert "loss_hard" not in training_logs(trainer)[0]
    with pytest.raises(ValueError, match="no labels"):
        others(rows=rows, max_steps=2).train()


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


def test_encoder_decoder_models_compare_the_encoders_states(others):
    def bart(width, seed):
        torch.manual_seed(seed)
        sizes = {"d_model": width, "encoder_layers": 2, "decoder_layers": 1, "vocab_size": 40}
        heads = {"encoder_attention_heads": 2, "decoder_attention_heads": 2, "max_position_embeddings": 32}
        feed_forward = {"encoder_ffn_dim": 24, "decoder_ffn_dim": 24, "pad_token_id": 0, "dropout": 0.0}
        return BartForConditionalGeneration(BartConfig(**sizes, **heads, **feed_forward))

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

    fields = {"hidden_loss": MeanWidth(), "prediction_loss": Distance()}
    trainer = others(keywords=fields, embedding_weight=0.0, max_steps=1)
    assert len(trainer.projections) == 0
    trainer.train()
    regression = {"num_labels": 1, "problem_type": "regression"}
    rows = [{**row, "labels": float(row["labels"])} for row in tiny_classifier_rows()]
    models = tiny_classifier(**regression), tiny_classifier(1, **regression)
    others(*models, rows, keywords={"prediction_loss": Distance()}, max_steps=1).train()
    with pytest.raises(ValueError, match="single class"):
        others(*models, rows)


def test_model_init(others):
    trainer = DistillationTrainer(
        model_init=lambda: tiny_classifier(),
        teacher_model=tiny_classifier(1, hidden_size=24),
        args=others().args,
        data_collator=pad,
        train_dataset=tiny_classifier_rows(),
    )
    for _ in range(2):
        trainer.train()
        assert "loss_hidden_1" in training_logs(trainer)[0] and not hasattr(trainer.model, PROJECTIONS)


# What does not fit is named before training begins


def test_solvers_that_do_not_fit(solvers, processor):
    other = MwpProcessor(tiny_tokenizer(), OutputVocabulary(constants=("2",)))
    with pytest.raises(ValueError, match="constants are .*'1'.* the teacher's .*'2'"):
        solvers(teacher=tiny_solver(other))
    larger = tiny_processor(indexed_numbers=True)
    with pytest.raises(ValueError, match="embeds"):
        solvers(teacher=tiny_solver(larger))
    with pytest.raises(ValueError, match="none"):
        solvers(teacher=tiny_classifier())
    with pytest.raises(ValueError, match="different tokenizers"):
        solvers(keywords={"teacher_processing_class": larger})
    with pytest.raises(ValueError, match="vocabulary"):
        solvers(keywords={"teacher_processing_class": other})
    solvers(keywords={"teacher_processing_class": tiny_processor()})


def test_shared_weights(solvers, processor):
    teacher = tiny_solver(processor)
    with pytest.raises(ValueError, match="same model"):
        solvers(teacher, teacher)
    student = tiny_solver(processor)
    student.encoder.embeddings = teacher.encoder.embeddings
    with pytest.raises(ValueError, match="word_embeddings.weight is the teacher's"):
        solvers(student, teacher)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"layer_mapping": "1:5"}, "layer 5 of the teacher"),
        ({"layer_mapping": "3:4"}, "layer 3 of the student"),
        ({"hidden_weights": [1.0, 0.9, 1.0]}, "3 entries, but the layer mapping has 2 pairs"),
        ({"prediction_weight": 0.0, "hidden_loss": None, "embedding_weight": 0.0}, "Nothing to learn"),
    ],
)
def test_impossible_arguments(solvers, fields, message):
    with pytest.raises(ValueError, match=message):
        solvers(**fields)


def test_the_papers_weights_are_for_three_layers(solvers, processor):
    trainer = solvers(tiny_solver(processor, layers=3), tiny_solver(processor, layers=6, seed=1))
    assert trainer.layers == [(1, 2), (2, 4), (3, 6)] and trainer.hidden_weights == [1.0, 0.9, 1.0]
    assert solvers().hidden_weights == [1.0, 1.0]


def test_other_models_that_do_not_fit(others):
    with pytest.raises(ValueError, match=r"\(2, 3\), the teacher's \(2, 4\)"):
        others(teacher=tiny_classifier(1, num_labels=4))
    others(teacher=tiny_classifier(1, num_labels=4), soft_label_weight=0.0)
    with pytest.raises(ValueError, match="3 does not divide 4"):
        others(student=tiny_classifier(num_hidden_layers=3))
    with pytest.raises(TypeError, match="teacher_model"):
        DistillationTrainer(model=tiny_classifier(), teacher_model="some/model")
    with pytest.raises(ValueError, match="compute_loss_func"):
        others(keywords={"compute_loss_func": lambda *args, **kwargs: None})

    class Tuple(BertForSequenceClassification):
        def forward(self, **inputs):
            return super().forward(**inputs).to_tuple()

    with pytest.raises(ValueError, match="teacher returns a tuple"):
        others(teacher=Tuple(tiny_classifier().config))
