"""[`StarkTrainer`] in scripts that were written for `Trainer`."""

import inspect
from functools import partial

import numpy as np
import pytest
import torch
from transformers import (
    AutoModelForSequenceClassification,
    BertForSequenceClassification,
    PrinterCallback,
    Trainer,
    TrainerCallback,
    TrainerState,
    TrainingArguments,
)
from transformers.trainer_utils import TrainOutput

from hf_mwp.compress.trainers import StarkTrainer
from tests.compress.pruning.encoders import tiny_encoder
from tests.compress.trainers.distilling import QUIET, copy_of, masked_lm_rows, pad, same_weights, unchanged
from tests.compress.trainers.run_stark import arguments, classifier_trainer, teacher_and_student
from tests.slow_parameters import slow_after
from tests.tiny import tiny_classifier_rows, tiny_tokenizer
from tests.tiny_causal import tiny_causal


ONE_EPOCH = {"num_train_epochs": 1, "sparsities": [0.5]}


def accuracy(prediction):
    return {"accuracy": float((prediction.predictions == prediction.label_ids).mean())}


def classes(logits, labels):
    return logits.argmax(-1)


def run_script(trainer, rows):
    """Call `trainer` as the example scripts of Transformers do."""
    result = trainer.train(resume_from_checkpoint=None)
    trainer.save_model()
    trainer.log_metrics("train", result.metrics)
    trainer.save_metrics("train", {**result.metrics, "train_samples": len(rows)})
    trainer.save_state()
    metrics = trainer.evaluate(eval_dataset=rows)
    trainer.log_metrics("eval", metrics)
    trainer.save_metrics("eval", metrics)
    predictions = trainer.predict(rows, metric_key_prefix="predict").predictions
    trainer.create_model_card(model_name="student", tasks="text-classification")
    return result, metrics, predictions


def test_script_of_trainer_runs_and_writes_the_same_files(tmp_path):
    rows = tiny_classifier_rows(8)
    methods = {"compute_metrics": accuracy, "preprocess_logits_for_metrics": classes}
    _, student = teacher_and_student()
    args = TrainingArguments(str(tmp_path / "plain"), **QUIET, num_train_epochs=1, save_strategy="no")
    plain = Trainer(student, args, pad, rows, rows, tiny_tokenizer(), **methods)
    plain_result, plain_metrics, _ = run_script(plain, rows)
    fields = ONE_EPOCH | {"metric_for_best_model": "accuracy"}
    stark = classifier_trainer(tmp_path / "stark", fields, processing_class=tiny_tokenizer(), **methods)
    result, metrics, predictions = run_script(stark, rows)

    files = {path.name for path in (tmp_path / "plain").iterdir()}
    assert files <= {path.name for path in (tmp_path / "stark").iterdir()}
    assert isinstance(result, TrainOutput)
    # The callback that prints without a progress bar removes `total_flos` from the result.
    assert result.metrics.keys() == plain_result.metrics.keys() | {"train_sparsity", "total_flos"}
    assert result.metrics["train_sparsity"] == stark.chosen.sparsity
    assert result.training_loss == result.metrics["train_loss"]
    assert result.global_step == stark.state.global_step == 2
    assert plain_metrics.keys() - {"eval_model_preparation_time"} <= metrics.keys()
    assert predictions.shape == (8,)
    assert stark.chosen.metric == "eval_accuracy"
    saved = TrainerState.load_from_json(str(tmp_path / "stark" / "trainer_state.json"))
    assert saved.global_step == 2
    assert same_weights(AutoModelForSequenceClassification.from_pretrained(tmp_path / "stark"), stark.chosen.load())
    # The result of the search is evaluated as `Trainer` evaluates it.
    args = TrainingArguments(str(tmp_path / "plain"), **QUIET)
    expected = Trainer(stark.chosen.load(), args, pad, **methods).predict(rows)
    assert np.array_equal(predictions, expected.predictions)
    assert metrics["eval_loss"] == pytest.approx(expected.metrics["test_loss"], rel=1e-5)


@pytest.mark.parametrize("name", ["train", "evaluate", "predict", "save_model", "log", "add_callback"])
def test_methods_have_the_parameters_of_trainer(name):
    parameters = [*inspect.signature(getattr(Trainer, name)).parameters]
    assert [*inspect.signature(getattr(StarkTrainer, name)).parameters][: len(parameters)] == parameters


@pytest.mark.slow
def test_given_student_is_evaluated_and_saved_before_the_training(tmp_path):
    teacher, student = teacher_and_student()
    rows = tiny_classifier_rows(8)
    args = arguments(tmp_path)
    # By position, in the order of `Trainer`.
    trainer = StarkTrainer(student, args, pad, rows, rows, teacher_model=teacher)
    assert trainer.model is student
    expected = student(**pad(rows))
    assert trainer.evaluate()["eval_loss"] == pytest.approx(expected.loss.item(), rel=1e-5)
    output = trainer.predict(rows, ignore_keys=["hidden_states"])
    assert torch.allclose(torch.from_numpy(output.predictions), expected.logits, atol=1e-5)
    trainer.save_model()
    assert same_weights(AutoModelForSequenceClassification.from_pretrained(tmp_path), student)
    assert args.to_dict() == arguments(tmp_path).to_dict()
    before = copy_of(student)
    trainer.train()
    assert unchanged(student, before)
    assert trainer.model is not student


class Record(TrainerCallback):
    """Records the number of trainings and evaluations, and of the steps."""

    def __init__(self):
        self.trainings = 0
        self.evaluations = 0
        self.steps = 0

    def on_train_begin(self, args, state, control, **kwargs):
        self.trainings += 1

    def on_evaluate(self, args, state, control, **kwargs):
        self.evaluations += 1

    def on_step_end(self, args, state, control, **kwargs):
        self.steps += 1


class RecordLater(Record):
    pass


@pytest.mark.slow
def test_callbacks_are_called_in_the_training_of_each_student(tmp_path, capsys):
    record = Record()
    later = RecordLater()
    trainer = classifier_trainer(tmp_path, ONE_EPOCH, callbacks=[record])
    trainer.add_callback(later)
    trainer.remove_callback(PrinterCallback)
    trainer.train()
    # Two students of two steps, evaluated after the epoch and at the end.
    assert (record.trainings, record.steps, record.evaluations) == (2, 4, 4)
    assert vars(later) == vars(record)
    assert "loss" not in capsys.readouterr().out
    trainer.evaluate()
    assert record.evaluations == 5
    # They may change the result, so students that were trained without them are others.
    folders = {student.folder for student in (trainer.trial, *trainer.students)}
    other = classifier_trainer(tmp_path, ONE_EPOCH)
    other.train()
    assert folders.isdisjoint(student.folder for student in (other.trial, *other.students))
    # A callback of the same class, whose state may be another, changes no folder.
    again = classifier_trainer(tmp_path, ONE_EPOCH, callbacks=[Record, RecordLater])
    again.train()
    assert {student.folder for student in (again.trial, *again.students)} == folders


class Kill(TrainerCallback):
    def on_train_end(self, args, state, control, **kwargs):
        raise InterruptedError


def kill(trainer, sparsity):
    if sparsity:
        trainer.add_callback(Kill())


@pytest.mark.slow
@pytest.mark.parametrize("names_folder", [False, True])
def test_interrupted_run_resumes(names_folder, tmp_path):
    with pytest.raises(InterruptedError):
        classifier_trainer(tmp_path, ONE_EPOCH, on_trainer=kill).train()
    trainer = classifier_trainer(tmp_path, ONE_EPOCH)
    result = trainer.train(resume_from_checkpoint=str(tmp_path) if names_folder else True)
    assert result.global_step == 2
    assert len(trainer.students) == 1


def test_impossible_calls_of_train_are_refused(tmp_path):
    trainer = classifier_trainer(tmp_path)
    with pytest.raises(ValueError, match="no run .* to resume"):
        trainer.train(resume_from_checkpoint=True)
    with pytest.raises(ValueError, match="`resume_from_checkpoint`.*checkpoint-500"):
        trainer.train(resume_from_checkpoint=str(tmp_path / "checkpoint-500"))
    with pytest.raises(ValueError, match="`trial`"):
        trainer.train(trial={"learning_rate": 1.0})
    assert not any(tmp_path.glob("stages/*/*"))


@pytest.mark.slow
def test_only_the_best_student_is_published(hub, tmp_path):
    fields = ONE_EPOCH | {"push_to_hub": True, "hub_model_id": "user/student"}
    trainer = classifier_trainer(tmp_path, fields, processing_class=tiny_tokenizer())
    trainer.train()
    assert [*hub.repositories] == ["user/student"]
    assert "model.safetensors" not in hub.repositories["user/student"].files("main")
    trainer.push_to_hub(finetuned_from="user/teacher", tasks="text-classification", dataset="rows")
    files = hub.repositories["user/student"].files("main")
    assert {"config.json", "model.safetensors", "README.md"} <= files.keys()
    assert "StarkTrainer" in files["record.json"].decode()


def token_rows(count, seed):
    rows = tiny_classifier_rows(count, seed)
    for row in rows:
        row["labels"] = [-100, *[token % 3 for token in row["input_ids"][1:]]]
    return rows


def masked_rows(count, seed):
    return masked_lm_rows(count)


def causal_rows(count, seed):
    rows = tiny_classifier_rows(count, seed, vocab_size=len(tiny_tokenizer()))
    return [row | {"labels": row["input_ids"]} for row in rows]


@pytest.mark.parametrize(
    ("make_model", "make_rows", "num_heads"),
    slow_after(
        1,
        [
            (partial(tiny_encoder, "modernbert", "ForTokenClassification"), token_rows, 6),
            (partial(tiny_encoder, "bert", "ForMaskedLM"), masked_rows, 6),
            (partial(tiny_causal, "llama"), causal_rows, 4),
            (partial(tiny_causal, "gpt2"), causal_rows, 4),
        ],
    ),
    ids=["tags", "masked tokens", "grouped queries", "next tokens"],
)
def test_teachers_that_predict_tokens(make_model, make_rows, num_heads, tmp_path):
    student = make_model(num_hidden_layers=1)
    args = arguments(tmp_path, **ONE_EPOCH)
    rows = make_rows(6, 1)
    trainer = StarkTrainer(student, args, pad, make_rows(8, 0), rows, teacher_model=make_model())
    trainer.train()
    assert type(trainer.model) is type(student)
    assert sum(trainer.chosen.heads) == num_heads
    assert trainer.evaluate()["eval_loss"] == pytest.approx(trainer.chosen.value)
    longest = max(len(row["input_ids"]) for row in rows)
    assert trainer.predict(rows).predictions.shape[:2] == (6, longest)


class OwnClassifier(BertForSequenceClassification):
    pass


def test_teacher_that_cannot_be_cut_is_refused_before_any_training(tmp_path):
    teacher, _ = teacher_and_student()
    teacher.__class__ = OwnClassifier
    with pytest.raises(ValueError, match="pruned OwnClassifier"):
        classifier_trainer(tmp_path, teacher_model=teacher)
    assert not any(tmp_path.iterdir())
