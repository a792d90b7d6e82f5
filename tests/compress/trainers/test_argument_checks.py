import pytest
from transformers import TrainingArguments

from hf_mwp.solver.training import SolverTrainer, SolverTrainingConfig
from tests.compress.trainers.distilling import without_labels
from tests.tiny import tiny_classifier_rows, tiny_rows, tiny_solver


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"per_device_train_batch_size": 0}, "`per_device_train_batch_size`.* 0"),
        ({"per_device_eval_batch_size": 0}, "`per_device_eval_batch_size`.* 0"),
        ({"gradient_accumulation_steps": 0}, "`gradient_accumulation_steps`.* 0"),
        ({"learning_rate": -1.0}, "`learning_rate`.*-1"),
        ({"learning_rate": float("nan")}, "`learning_rate`.*nan"),
        ({"weight_decay": -1.0}, "`weight_decay`.*-1"),
        ({"num_train_epochs": -1}, "`num_train_epochs`.*-1"),
        ({"num_train_epochs": 0}, "`num_train_epochs`.* 0"),
        ({"max_steps": 0}, "`max_steps`.* 0"),
        ({"logging_steps": -1}, "`logging_steps`.*-1"),
        ({"save_steps": 0, "save_strategy": "steps"}, "`save_steps`.* 0"),
    ],
)
def test_impossible_arguments_are_named(tmp_path, fields, message):
    with pytest.raises(ValueError, match=message):
        SolverTrainingConfig(output_dir=str(tmp_path), **fields)


def test_a_number_of_steps_needs_no_epochs(tmp_path):
    assert SolverTrainingConfig(output_dir=str(tmp_path), max_steps=3, num_train_epochs=0).max_steps == 3


def test_an_unknown_metric_is_named_before_training(fine_tuning_trainer, model_trainer):
    with pytest.raises(ValueError, match="`metric_for_best_model`.*'rouge'.*answer_accuracy"):
        fine_tuning_trainer(eval_strategy="epoch", metric_for_best_model="rouge")
    fine_tuning_trainer(metric_for_best_model="rouge")
    datasets = {"a": tiny_rows(6, seed=1)}
    fine_tuning_trainer(eval_rows=datasets, eval_strategy="epoch", metric_for_best_model="eval_a_answer_accuracy")
    with pytest.raises(ValueError, match="`metric_for_best_model`.*'answer_accuracy'.* loss"):
        model_trainer(eval_strategy="epoch", metric_for_best_model="answer_accuracy")


def test_a_metric_of_evaluation_rows_without_labels_is_named(model_trainer):
    rows = without_labels(tiny_classifier_rows(4))
    fields = {"eval_strategy": "epoch", "load_best_model_at_end": True, "save_strategy": "epoch"}
    with pytest.raises(KeyError, match="`metric_for_best_model`.*'eval_loss'"):
        model_trainer(eval_rows=rows, **fields).train()


def test_names_of_metrics_before_an_evaluation_are_those_after_it(fine_tuning_trainer):
    trainer = fine_tuning_trainer(eval_strategy="epoch")
    names = set()
    for name in trainer.evaluate():
        if not name.endswith(("epoch", "time", "_per_second")):
            names.add(name.removeprefix("eval_"))
    assert trainer._metric_names(trainer.eval_dataset) == names


@pytest.mark.parametrize(
    ("datasets", "name"),
    [
        ({"rows": []}, "train_dataset"),
        ({"eval_rows": []}, "eval_dataset"),
        ({"eval_rows": {"a": tiny_rows(3), "b": []}}, "eval_dataset b"),
    ],
)
def test_empty_datasets_are_named(fine_tuning_trainer, datasets, name):
    with pytest.raises(ValueError, match=f"`{name}`.*empty"):
        fine_tuning_trainer(**datasets)


def test_another_config_is_named_with_the_right_one(processor, tmp_path):
    args = TrainingArguments(output_dir=str(tmp_path), report_to="none")
    with pytest.raises(TypeError, match=r"`args`.*`SolverTrainingConfig`.*`TrainingArguments`"):
        SolverTrainer(tiny_solver(processor), args, train_dataset=tiny_rows(8), processing_class=processor)
