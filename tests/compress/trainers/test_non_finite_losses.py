"""Losses that are NaN or infinite: which part, at which step, in each trainer."""

import math

import pytest
import torch

from hf_mwp.compress.trainers.base_config import BaseConfig
from hf_mwp.compress.trainers.base_trainer import BaseTrainer
from hf_mwp.compress.trainers.non_finite_losses import NonFiniteLosses
from hf_mwp.solver.training import PreTrainingConfig, PreTrainingTrainer
from tests.compress.trainers.distilling import QUIET, pad
from tests.pretraining import text_processor, tiny_pairs, tiny_student
from tests.slow_parameters import slow_after
from tests.tiny import tiny_classifier, tiny_classifier_rows, tiny_solver


def losses(**values):
    return {name: torch.tensor(value) for name, value in values.items()}


def test_the_first_step_and_its_parts_are_named():
    record = NonFiniteLosses()
    record.note(losses(loss_soft=1.0, loss_hidden=2.0, loss_hard=1.0), 3)
    record.check()
    record.note(losses(loss_soft=math.nan, loss_hidden=math.inf, loss_hard=1.0, loss=math.nan), 4)
    record.note(losses(loss_soft=1.0, loss_hidden=math.nan, loss_hard=math.nan, loss=math.nan), 5)
    with pytest.raises(ValueError, match=r"`loss_soft`, `loss_hidden` .* step 4\b"):
        record.check()
    # Each check is of the losses that were noted since the last one.
    record.note(losses(loss_soft=1.0, loss_hidden=2.0, loss_hard=1.0, loss=4.0), 6)
    record.check()


def test_a_loss_without_parts_is_named():
    record = NonFiniteLosses()
    record.note(losses(loss=-math.inf), 7)
    with pytest.raises(ValueError, match=r"`loss` .* step 7\b"):
        record.check()


def test_the_first_step_of_all_processes_counts():
    record = NonFiniteLosses()
    record.note(losses(loss=math.nan, loss_hard=1.0), 2)
    other_record = NonFiniteLosses()
    other_record.note(losses(loss=math.nan, loss_hard=math.nan), 1)
    gathered = []

    def gather_alone(steps):
        gathered.append(steps)
        return steps

    with pytest.raises(ValueError):
        other_record.check(gather_alone)
    with pytest.raises(ValueError, match=r"`loss_hard` .* step 1\b"):
        record.check(lambda steps: torch.cat([steps, gathered[0]]))


def test_no_device_is_waited_for():
    record = NonFiniteLosses()
    for step in (1, 2):
        record.note({"loss": torch.zeros((), device="meta")}, step)


def arguments(folder, config_class=BaseConfig, **fields):
    defaults = {"per_device_train_batch_size": 4, "max_steps": 4, "save_strategy": "no", "logging_steps": 50}
    return config_class(output_dir=str(folder), **(QUIET | defaults | fields))


def break_layer(model):
    model.base_model.encoder.layer[1].output.dense.weight.data[0, 0] = math.nan
    return model


def break_token(model, token=10):
    model.get_input_embeddings().weight.data[token] = math.nan
    return model


def rows_with_token_10_at_the_end():
    """Token 10 is in the last two rows alone, neither in the first batches nor in the two examples of the setup."""
    rows = tiny_classifier_rows(16)
    for row in rows:
        row["input_ids"] = [11 if token == 10 else token for token in row["input_ids"]]
    rows[-2]["input_ids"][0] = 10
    rows[-1]["input_ids"][0] = 10
    return rows


def test_a_broken_teacher_is_named_before_the_training(model_trainer):
    teacher = tiny_classifier(seed=1, num_hidden_layers=4)
    teacher.classifier.weight.data[0, 0] = math.nan
    fields = {"hidden_loss": None, "embedding_weight": 0.0, "cache_teacher_outputs": True}
    with pytest.raises(ValueError, match="teacher.*NaN.*loss_soft"):
        model_trainer(teacher=teacher, **fields)


def test_a_broken_student_is_named_before_the_training(model_trainer):
    with pytest.raises(ValueError, match="student.*NaN.*loss_soft.*loss_hard.*loss_hidden_2"):
        model_trainer(student=break_layer(tiny_classifier()))


def test_both_models_are_named_if_both_are_broken(solver_trainer, processor):
    teacher = tiny_solver(processor, layers=4)
    student = tiny_solver(processor)
    break_token(teacher.encoder, processor.tokenizer.cls_token_id)
    break_token(student.encoder, processor.tokenizer.cls_token_id)
    with pytest.raises(ValueError, match="teacher.*student.*NaN"):
        solver_trainer(student, teacher)


@pytest.mark.parametrize(
    "fields", slow_after(1, [{"logging_steps": 1}, {"save_strategy": "steps", "save_steps": 1}, {}])
)
def test_a_teacher_that_is_broken_for_some_rows_ends_the_training(model_trainer, fields, tmp_path):
    teacher = break_token(tiny_classifier(seed=1, num_hidden_layers=4))
    defaults = {"train_sampling_strategy": "sequential", "per_device_train_batch_size": 2, "logging_steps": 50}
    trainer = model_trainer(teacher=teacher, rows=rows_with_token_10_at_the_end(), **(defaults | fields))
    with pytest.raises(ValueError, match=r"`loss_soft`, `loss_hidden_1`.* step 8\b"):
        trainer.train()
    assert not (tmp_path / "checkpoint-8").exists()
    assert not list(tmp_path.glob("*.safetensors"))
    assert (tmp_path / "checkpoint-7").exists() == ("save_steps" in fields)


def test_a_broken_solver_is_not_evaluated(processor, fine_tuning_trainer):
    solver = break_token(tiny_solver(processor), processor.tokenizer.cls_token_id)
    trainer = fine_tuning_trainer(solver, eval_strategy="steps", eval_steps=1, max_steps=1)
    trainer.evaluation_loop = lambda *args, **kwargs: pytest.fail("a broken model is evaluated")
    with pytest.raises(ValueError, match=r"`loss` .* step 1\b"):
        trainer.train()


def test_a_loss_of_accumulated_batches_is_named(tmp_path):
    model = break_token(tiny_classifier())
    fields = {"max_steps": 2, "gradient_accumulation_steps": 2, "train_sampling_strategy": "sequential"}
    rows = rows_with_token_10_at_the_end()
    with pytest.raises(ValueError, match=r"`loss` .* step 2\b"):
        BaseTrainer(model, arguments(tmp_path, **fields), train_dataset=rows, data_collator=pad).train()


@pytest.mark.parametrize(
    ("module", "part"),
    slow_after(1, [("cls.predictions.transform", "`mlm_loss`"), ("cls.pos_tagger", "`pos_loss`")]),
)
def test_the_part_of_a_pretraining_is_named(module, part, tmp_path):
    processor = text_processor(indexed_numbers=True)
    model = tiny_student(processor)
    next(model.get_submodule(module).parameters()).data.fill_(math.nan)
    args = arguments(tmp_path, PreTrainingConfig)
    trainer = PreTrainingTrainer(model, args, train_dataset=tiny_pairs(60), processing_class=processor)
    with pytest.raises(ValueError, match=rf" {part} .* step 1\b"):
        trainer.train()
