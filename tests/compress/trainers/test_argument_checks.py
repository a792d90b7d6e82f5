import pytest
from transformers import TrainingArguments

from hf_mwp.solver.training import SolverTrainer, SolverTrainingConfig
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
def test_mistakes_are_named_before_the_work(tmp_path, fields, message):
    with pytest.raises(ValueError, match=message):
        SolverTrainingConfig(output_dir=str(tmp_path), **fields)


def test_a_number_of_steps_needs_no_epochs(tmp_path):
    assert SolverTrainingConfig(output_dir=str(tmp_path), max_steps=3, num_train_epochs=0).max_steps == 3


@pytest.fixture
def make_trainer(processor, tmp_path):
    def make(train=None, evaluation=None, args=None, **fields):
        config = SolverTrainingConfig(output_dir=str(tmp_path), use_cpu=True, report_to="none", **fields)
        return SolverTrainer(
            model=tiny_solver(processor),
            args=config if args is None else args,
            train_dataset=tiny_rows(8) if train is None else train,
            eval_dataset=tiny_rows(6, seed=1) if evaluation is None else evaluation,
            processing_class=processor,
        )

    return make


def test_an_unknown_metric_is_named_before_training(make_trainer, others):
    with pytest.raises(ValueError, match="`metric_for_best_model`.*'rouge'.*answer_accuracy"):
        make_trainer(eval_strategy="epoch", metric_for_best_model="rouge")
    make_trainer(metric_for_best_model="rouge")
    parts = {"a": tiny_rows(6, seed=1)}
    make_trainer(evaluation=parts, eval_strategy="epoch", metric_for_best_model="eval_a_answer_accuracy")
    with pytest.raises(ValueError, match="`metric_for_best_model`.*'answer_accuracy'.* loss"):
        others(eval_strategy="epoch", metric_for_best_model="answer_accuracy")


def test_evaluation_rows_without_labels_are_named(others):
    rows = [{name: value for name, value in row.items() if name != "labels"} for row in tiny_classifier_rows(4)]
    fields = {"eval_strategy": "epoch", "load_best_model_at_end": True, "save_strategy": "epoch"}
    with pytest.raises(KeyError, match="`metric_for_best_model`.*'eval_loss'"):
        others(eval_rows=rows, **fields).train()


def test_what_an_evaluation_gives_is_known_before_it(make_trainer):
    trainer = make_trainer(eval_strategy="epoch")
    found = {name.removeprefix("eval_") for name in trainer.evaluate()}
    measured = ("epoch", "time", "_per_second")
    names = trainer._metric_names(trainer.eval_dataset)
    assert names == {name for name in found if not name.endswith(measured)}


def test_empty_data_sets_are_named(make_trainer, others):
    with pytest.raises(ValueError, match="`train_dataset`.*empty"):
        make_trainer(train=[])
    with pytest.raises(ValueError, match="`eval_dataset`.*empty"):
        make_trainer(evaluation=[])
    with pytest.raises(ValueError, match="`eval_dataset b`.*empty"):
        make_trainer(evaluation={"a": tiny_rows(3), "b": []})
    with pytest.raises(ValueError, match="`train_dataset`.*empty"):
        others(rows=[])
    with pytest.raises(ValueError, match="`eval_dataset`.*empty"):
        others(rows=tiny_classifier_rows(), eval_rows=[])


def test_other_arguments_say_what_to_make(make_trainer, tmp_path):
    with pytest.raises(
        TypeError, match=r"`args`.*`SolverTrainingConfig`.*`TrainingArguments`.*`SolverTrainingConfig\("
    ):
        make_trainer(args=TrainingArguments(output_dir=str(tmp_path), report_to="none"))
