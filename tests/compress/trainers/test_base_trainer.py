"""What all trainers share: here with a classifier of Transformers, whose loss is a mean over its batch."""

import pytest

from hf_mwp.compress.trainers.base_config import BaseConfig
from hf_mwp.compress.trainers.base_trainer import BaseTrainer
from hf_mwp.solver.training import SolverTrainer, SolverTrainingConfig
from tests.compress.trainers.distilling import QUIET, first_losses, pad, same_weights, training_logs
from tests.slow_parameters import slow_after
from tests.tiny import tiny_classifier, tiny_classifier_rows, tiny_processor, tiny_rows, tiny_solver


STEPS = {"per_device_train_batch_size": 2, "lr_scheduler_type": "constant"}


@pytest.fixture
def config_of(tmp_path):
    def make(config_class=BaseConfig, **fields):
        return config_class(str(tmp_path), **(QUIET | {"logging_steps": 1} | fields))

    return make


@pytest.fixture
def trainer_of(config_of):
    """Makes a trainer of a classifier."""

    def make(rows=None, keywords=None, **fields):
        rows = tiny_classifier_rows(8) if rows is None else rows
        return BaseTrainer(tiny_classifier(), config_of(**fields), pad, rows, rows[:4], **(keywords or {}))

    return make


def first_entry(trainer):
    """The loss and the gradient of a training's first step."""
    loss = first_losses(trainer)["loss"]
    return loss, training_logs(trainer)[0]["grad_norm"]


@pytest.mark.parametrize(("size", "num_batches"), slow_after(1, [(3, 2), (2, 3), (1, 5)]))
def test_accumulated_batches_have_the_gradient_of_one(trainer_of, size, num_batches):
    # The last of several batches is a short one.
    rows = tiny_classifier_rows(5)
    fields = {"max_steps": 1, "max_grad_norm": 1e9}
    expected = first_entry(trainer_of(rows, per_device_train_batch_size=5, **fields))
    fields |= {"per_device_train_batch_size": size, "gradient_accumulation_steps": num_batches}
    assert first_entry(trainer_of(rows, **fields)) == pytest.approx(expected, rel=1e-4)


def test_a_short_batch_of_problems_counts_by_its_rows(config_of):
    processor = tiny_processor()
    entries = []
    for size, num_batches in ((5, 1), (4, 2)):
        fields = {"per_device_train_batch_size": size, "gradient_accumulation_steps": num_batches}
        args = config_of(SolverTrainingConfig, max_steps=1, max_grad_norm=1e9, **fields)
        keywords = {"train_dataset": tiny_rows(5), "processing_class": processor}
        entries.append(first_entry(SolverTrainer(tiny_solver(processor), args, **keywords)))
    assert entries[0] == pytest.approx(entries[1], rel=1e-4)


def test_batches_without_labels_do_not_count(trainer_of):
    rows = tiny_classifier_rows(4)
    rows[1]["labels"] = -100
    rows[3]["labels"] = -100
    fields = {"per_device_train_batch_size": 1, "gradient_accumulation_steps": 4, "max_steps": 1}
    expected, _ = first_entry(trainer_of([rows[0], rows[2]], per_device_train_batch_size=2, max_steps=1))
    loss, _ = first_entry(trainer_of(rows, **fields))
    assert loss == pytest.approx(expected, rel=1e-4)


def test_a_finished_run_is_not_continued(trainer_of):
    finished = trainer_of(max_steps=3, save_steps=3, **STEPS)
    finished.train()
    resumed = trainer_of(max_steps=3, save_steps=3, **STEPS)
    resumed.train(resume_from_checkpoint=True)
    assert resumed.state.global_step == 3
    assert same_weights(resumed.model, finished.model)


@pytest.mark.slow
def test_a_resumed_run_has_its_own_intervals(trainer_of, tmp_path):
    def saved_steps():
        return sorted(int(path.name.removeprefix("checkpoint-")) for path in tmp_path.glob("checkpoint-*"))

    trainer_of(max_steps=6, save_steps=3, logging_steps=3, **STEPS).train()
    assert saved_steps() == [3, 6]
    resumed = trainer_of(max_steps=6, save_steps=2, logging_steps=2, **STEPS)
    resumed.train(resume_from_checkpoint=str(tmp_path / "checkpoint-3"))
    assert saved_steps() == [3, 4, 6]
    assert [entry["step"] for entry in training_logs(resumed)] == [3, 4, 6]


def test_each_evaluation_reads_its_own_rows(trainer_of):
    rows = tiny_classifier_rows(8)
    trainer = trainer_of(rows, dataloader_num_workers=1, dataloader_persistent_workers=True)
    first = trainer.evaluate(rows[:4])["eval_loss"]
    second = trainer.evaluate(rows[4:])["eval_loss"]
    assert first != second
    assert trainer.evaluate()["eval_loss"] == first


@pytest.mark.parametrize(("metric", "mode"), [(None, "min"), ("eval_accuracy", "max")])
def test_a_schedule_that_follows_a_metric_has_its_direction(metric, mode, trainer_of):
    fields = {"lr_scheduler_type": "reduce_lr_on_plateau", "eval_strategy": "epoch", "metric_for_best_model": metric}
    trainer = trainer_of(keywords={"compute_metrics": lambda output: {"accuracy": 0.5}}, num_train_epochs=1, **fields)
    trainer.train()
    assert trainer.lr_scheduler.mode == mode


def test_a_single_process_uses_a_single_gpu(config_of, monkeypatch, caplog):
    # Without the setting of the config, as on a machine with two.
    monkeypatch.setattr(BaseConfig, "n_gpu", property(lambda self: vars(self)["_n_gpu"] or 2))
    with caplog.at_level("WARNING", logger="hf_mwp"):
        assert config_of().n_gpu == 1
    assert "Only one of 2 GPUs" in caplog.text


@pytest.mark.parametrize(
    ("bf16", "has_instructions", "warns"), [(True, False, True), (True, True, False), (False, False, False)]
)
def test_slow_bf16_is_warned_of(bf16, has_instructions, warns, config_of, monkeypatch, caplog):
    monkeypatch.setattr("hf_mwp.compress.trainers.base_config._has_bf16_instructions", lambda: has_instructions)
    with caplog.at_level("WARNING", logger="hf_mwp"):
        config_of(bf16=bf16)
    assert ("no bf16 instructions" in caplog.text) == warns
