"""What all trainers share: here with a classifier of Transformers, whose loss is a mean over its batch."""

import pytest
from transformers import default_data_collator

from hf_mwp.compress.trainers.base_config import BaseConfig
from hf_mwp.compress.trainers.base_trainer import BaseTrainer
from hf_mwp.solver.training import SolverTrainer, SolverTrainingConfig
from tests.compress.trainers.distilling import pad, unchanged
from tests.tiny import tiny_classifier, tiny_classifier_rows, tiny_processor, tiny_rows, tiny_solver


ROWS = [{"input_ids": [2, 5, 6, index, 3], "attention_mask": [1] * 5, "labels": index % 3} for index in range(8)]


def test_accumulated_batches_have_the_gradient_of_one(tmp_path):
    logs = []
    for batches in (1, 4):
        fields = {"per_device_train_batch_size": 8 // batches, "gradient_accumulation_steps": batches, "max_steps": 1}
        args = BaseConfig(output_dir=str(tmp_path), use_cpu=True, report_to="none", logging_steps=1, **fields)
        trainer = BaseTrainer(tiny_classifier(), args, default_data_collator, ROWS)
        trainer.train()
        logs.append({name: trainer.state.log_history[0][name] for name in ("loss", "grad_norm")})
    assert logs[1] == pytest.approx(logs[0], rel=1e-4)


def logs_of(trainer):
    trainer.train()
    return {name: trainer.state.log_history[0][name] for name in ("loss", "grad_norm")}


def test_a_short_batch_counts_by_its_rows(tmp_path):
    fields = {"use_cpu": True, "report_to": "none", "logging_steps": 1, "max_steps": 1, "max_grad_norm": 1e9}
    rows = tiny_classifier_rows(5)
    processor = tiny_processor()
    solver = tiny_solver(processor).state_dict()
    logs = {"classifier": [], "solver": []}
    for size, steps in ((5, 1), (4, 2)):
        sizes = {"per_device_train_batch_size": size, "gradient_accumulation_steps": steps}
        args = BaseConfig(output_dir=str(tmp_path), **fields, **sizes)
        logs["classifier"].append(logs_of(BaseTrainer(tiny_classifier(), args, pad, rows)))
        model = tiny_solver(processor)
        model.load_state_dict(solver)
        args = SolverTrainingConfig(output_dir=str(tmp_path), **fields, **sizes)
        options = {"train_dataset": tiny_rows(5), "processing_class": processor}
        logs["solver"].append(logs_of(SolverTrainer(model, args, **options)))
    for one, two in logs.values():
        assert two == pytest.approx(one, rel=1e-4)


def test_batches_without_labels_count_nothing(tmp_path):
    rows = [{"input_ids": [2, 5, 3], "attention_mask": [1] * 3, "labels": label} for label in (1, -100, 2, -100)]
    fields = {"per_device_train_batch_size": 1, "gradient_accumulation_steps": 4, "max_steps": 1, "logging_steps": 1}
    args = BaseConfig(output_dir=str(tmp_path), use_cpu=True, report_to="none", **fields)
    assert logs_of(BaseTrainer(tiny_classifier(), args, default_data_collator, rows))["loss"] < 10


def test_a_finished_run_is_not_continued(tmp_path):
    fields = {"per_device_train_batch_size": 2, "max_steps": 3, "save_steps": 3, "lr_scheduler_type": "constant"}
    args = BaseConfig(output_dir=str(tmp_path), use_cpu=True, report_to="none", disable_tqdm=True, **fields)
    first, again = (BaseTrainer(tiny_classifier(), args, default_data_collator, ROWS) for _ in range(2))
    first.train()
    again.train(resume_from_checkpoint=True)
    assert again.state.global_step == 3
    assert unchanged(again.model, first.model.state_dict())


def test_a_resumed_run_has_its_own_intervals(tmp_path):
    for steps, resume, saved in ((3, None, [3, 6]), (2, tmp_path / "checkpoint-3", [3, 4, 6])):
        fields = {"per_device_train_batch_size": 2, "max_steps": 6, "save_steps": steps, "logging_steps": steps}
        args = BaseConfig(output_dir=str(tmp_path), use_cpu=True, report_to="none", disable_tqdm=True, **fields)
        trainer = BaseTrainer(tiny_classifier(), args, default_data_collator, ROWS)
        trainer.train(resume_from_checkpoint=None if resume is None else str(resume))
        assert sorted(int(path.name[11:]) for path in tmp_path.glob("checkpoint-*")) == saved
    assert [each["step"] for each in trainer.state.log_history if "loss" in each] == [3, 4, 6]


def test_the_rows_of_each_evaluation_are_its_own(tmp_path):
    fields = {"dataloader_num_workers": 1, "dataloader_persistent_workers": True}
    args = BaseConfig(output_dir=str(tmp_path), use_cpu=True, report_to="none", **fields)
    trainer = BaseTrainer(tiny_classifier(), args, default_data_collator, ROWS, ROWS[:4])
    losses = [trainer.evaluate(given)["eval_loss"] for given in (ROWS[:4], ROWS[4:], None)]
    assert losses[0] != losses[1] and losses[2] == losses[0]


@pytest.mark.parametrize(("metric", "mode"), [(None, "min"), ("eval_accuracy", "max")])
def test_a_schedule_that_follows_a_metric_knows_its_direction(metric, mode, tmp_path):
    fields = {"lr_scheduler_type": "reduce_lr_on_plateau", "eval_strategy": "epoch", "metric_for_best_model": metric}
    args = BaseConfig(output_dir=str(tmp_path), use_cpu=True, report_to="none", disable_tqdm=True, **fields)
    measure = {"compute_metrics": lambda output: {"accuracy": 0.5}}
    trainer = BaseTrainer(tiny_classifier(), args, default_data_collator, ROWS, ROWS[:4], **measure)
    trainer.train()
    assert trainer.lr_scheduler.mode == mode


def test_a_single_process_uses_a_single_gpu(tmp_path, monkeypatch, caplog):
    # Without the setting of the config, as on a machine with two.
    monkeypatch.setattr(BaseConfig, "n_gpu", property(lambda self: vars(self)["_n_gpu"] or 2))
    with caplog.at_level("WARNING", logger="hf_mwp"):
        args = BaseConfig(output_dir=str(tmp_path), use_cpu=True, report_to="none")
    assert args.n_gpu == 1 and "Only one of 2 GPUs" in caplog.text


@pytest.mark.parametrize(
    ("bf16", "instructions", "warned"), [(True, False, True), (True, True, False), (False, False, False)]
)
def test_slow_bf16_is_warned_of(bf16, instructions, warned, tmp_path, monkeypatch, caplog):
    monkeypatch.setattr("hf_mwp.compress.trainers.base_config._has_bf16_instructions", lambda: instructions)
    with caplog.at_level("WARNING", logger="hf_mwp"):
        BaseConfig(output_dir=str(tmp_path), use_cpu=True, report_to="none", bf16=bf16)
    assert ("no bf16 instructions" in caplog.text) == warned
