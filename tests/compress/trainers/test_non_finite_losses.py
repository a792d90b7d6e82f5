"""Losses that are NaN or infinite: which part, at which step, in each trainer."""

import math

import pytest
import torch

from hf_mwp.compress.trainers import RecursiveDistillationConfig, StarkConfig, StarkTrainer, recursive_distillation
from hf_mwp.compress.trainers.base_config import BaseConfig
from hf_mwp.compress.trainers.base_trainer import BaseTrainer
from hf_mwp.compress.trainers.non_finite_losses import NonFiniteLosses
from hf_mwp.solver.training import PreTrainingConfig, PreTrainingTrainer, SolverTrainer, SolverTrainingConfig
from tests.compress.pruning.encoders import tiny_encoder
from tests.compress.trainers.distilling import pad
from tests.pretraining import text_processor, tiny_pairs, tiny_student
from tests.tiny import tiny_classifier, tiny_classifier_rows, tiny_rows, tiny_solver


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
    # Each look is at what has been noted since the last one.
    record.note(losses(loss_soft=1.0, loss_hidden=2.0, loss_hard=1.0, loss=4.0), 6)
    record.check()


def test_a_loss_without_parts():
    record = NonFiniteLosses()
    record.note(losses(loss=-math.inf), 7)
    with pytest.raises(ValueError, match=r"`loss` .* step 7\b"):
        record.check()


def test_the_first_step_of_all_processes_counts():
    record = NonFiniteLosses()
    record.note(losses(loss=math.nan, loss_hard=1.0), 2)
    other = NonFiniteLosses()
    other.note(losses(loss=math.nan, loss_hard=math.nan), 1)
    gathered = []
    with pytest.raises(ValueError):
        other.check(lambda noted: gathered.append(noted) or noted)
    with pytest.raises(ValueError, match=r"`loss_hard` .* step 1\b"):
        record.check(lambda noted: torch.cat([noted, gathered[0]]))


def test_no_device_is_waited_for():
    record = NonFiniteLosses()
    for step in (1, 2):
        record.note({"loss": torch.zeros((), device="meta")}, step)


def arguments(folder, kind, **fields):
    defaults = {"per_device_train_batch_size": 4, "max_steps": 4, "save_strategy": "no", "logging_steps": 50}
    return kind(output_dir=str(folder), use_cpu=True, report_to="none", disable_tqdm=True, **(defaults | fields))


def break_layer(model, layer=1):
    model.base_model.encoder.layer[layer].output.dense.weight.data[0, 0] = math.nan
    return model


# Token 10 stands in the last two rows alone: neither the first batches nor the two examples of the setup have it.
def late_rows():
    rows = [{**row, "input_ids": [token if token != 10 else 11 for token in row["input_ids"]]} for row in ROWS]
    return [*rows[:-2], *({**row, "input_ids": [10, *row["input_ids"][1:]]} for row in rows[-2:])]


ROWS = tiny_classifier_rows(16)


def break_token(model, token=10):
    model.get_input_embeddings().weight.data[token] = math.nan
    return model


@pytest.mark.parametrize("cached", [False, True])
@pytest.mark.parametrize("logits_alone", [False, True])
def test_a_broken_teacher_is_refused_before_it_teaches(others, cached, logits_alone):
    teacher = tiny_classifier(seed=1, num_hidden_layers=4)
    fields = {"cache_teacher_outputs": cached}
    if logits_alone:
        teacher.classifier.weight.data[0, 0] = math.nan
        fields |= {"hidden_loss": None, "embedding_weight": 0.0}
    else:
        break_layer(teacher)
    with pytest.raises(ValueError, match="teacher.*NaN.*loss_soft"):
        others(teacher=teacher, **fields)


def test_a_broken_student_is_refused_before_it_learns(others):
    with pytest.raises(ValueError, match="student.*NaN.*loss_soft.*loss_hard.*loss_hidden_2"):
        others(student=break_layer(tiny_classifier()))


def test_both_models_may_be_broken(solvers, processor):
    teacher = tiny_solver(processor, layers=4)
    student = tiny_solver(processor)
    for model in (teacher, student):
        break_token(model.encoder, processor.tokenizer.cls_token_id)
    with pytest.raises(ValueError, match="teacher.*student.*NaN"):
        solvers(student, teacher)


@pytest.mark.parametrize("when", [{"logging_steps": 1}, {"save_strategy": "steps", "save_steps": 1}, {}])
def test_a_teacher_that_is_broken_for_some_examples_stops_the_training(others, when, tmp_path):
    teacher = break_token(tiny_classifier(seed=1, num_hidden_layers=4))
    fields = {"train_sampling_strategy": "sequential", "per_device_train_batch_size": 2, "logging_steps": 50}
    trainer = others(teacher=teacher, rows=late_rows(), **(fields | when))
    with pytest.raises(ValueError, match=r"`loss_soft`, `loss_hidden_1`.* step 8\b"):
        trainer.train()
    assert not (tmp_path / "checkpoint-8").exists() and not list(tmp_path.glob("*.safetensors"))
    assert (tmp_path / "checkpoint-7").exists() == ("save_steps" in when)


def test_solvers(processor, tmp_path):
    solver = break_token(tiny_solver(processor), processor.tokenizer.cls_token_id)
    trainer = SolverTrainer(
        solver, arguments(tmp_path, SolverTrainingConfig), train_dataset=tiny_rows(), processing_class=processor
    )
    with pytest.raises(ValueError, match=r"`loss` .* step 1\b"):
        trainer.train()


def test_an_evaluation_does_not_come_first(processor, tmp_path):
    solver = break_token(tiny_solver(processor), processor.tokenizer.cls_token_id)
    args = arguments(tmp_path, SolverTrainingConfig, eval_strategy="steps", eval_steps=1)
    rows = {"train_dataset": tiny_rows(), "eval_dataset": tiny_rows(4)}
    trainer = SolverTrainer(solver, args, **rows, processing_class=processor)
    trainer.evaluation_loop = lambda *args, **kwargs: pytest.fail("a broken model is evaluated")
    with pytest.raises(ValueError, match=r"`loss` .* step 1\b"):
        trainer.train()


def test_other_models_with_accumulated_batches(tmp_path):
    rows = late_rows()
    model = break_token(tiny_classifier())
    args = arguments(tmp_path, BaseConfig, max_steps=2, gradient_accumulation_steps=2)
    args.train_sampling_strategy = "sequential"
    with pytest.raises(ValueError, match=r"`loss` .* step 2\b"):
        BaseTrainer(model, args, train_dataset=rows, data_collator=pad).train()


@pytest.mark.parametrize(
    ("module", "names"), [("cls.predictions.transform", "`mlm_loss`"), ("cls.pos_tagger", "`pos_loss`")]
)
def test_pretraining_names_the_part(module, names, tmp_path):
    processor = text_processor(indexed_numbers=True)
    model = tiny_student(processor)
    next(model.get_submodule(module).parameters()).data.fill_(math.nan)
    args = arguments(tmp_path, PreTrainingConfig)
    trainer = PreTrainingTrainer(model, args, train_dataset=tiny_pairs(60), processing_class=processor)
    with pytest.raises(ValueError, match=rf" {names} .* step 1\b"):
        trainer.train()


def test_loops_over_models(tmp_path):
    teacher = break_layer(tiny_encoder("bert", "ForSequenceClassification"))
    rows = {"train_dataset": ROWS, "eval_dataset": ROWS[:4], "data_collator": pad}
    fields = {"max_steps": 2, "use_cpu": True, "report_to": "none", "disable_tqdm": True}
    with pytest.raises(ValueError, match="teacher.*NaN"):
        recursive_distillation(
            teacher, RecursiveDistillationConfig(str(tmp_path), num_pruning_steps=1, **fields), **rows
        )
    student = tiny_encoder("bert", "ForSequenceClassification")
    with pytest.raises(ValueError, match="teacher.*NaN"):
        StarkTrainer(student, teacher, StarkConfig(str(tmp_path), sparsities=[0.5], **fields), **rows)
    # Found only by the trial student's training.
    teacher = break_token(tiny_encoder("bert", "ForSequenceClassification"))
    args = StarkConfig(str(tmp_path), sparsities=[0.5], per_device_train_batch_size=16, **fields)
    with pytest.raises(ValueError, match=r"loss_soft.* step 1\b"):
        StarkTrainer(student, teacher, args, **(rows | {"train_dataset": late_rows()})).train()
