"""All trainers warn of texts that the tokenizer cannot read, before the training."""

import pytest

from hf_mwp.compress.trainers import DistillationConfig, DistillationTrainer, unknown_tokens
from hf_mwp.solver.training import PreTrainingConfig, PreTrainingTrainer, SolverTrainer, SolverTrainingConfig
from tests.compress.trainers.distilling import QUIET
from tests.other_tokens import in_other_tokens, other_processor
from tests.pretraining import text_processor, tiny_student
from tests.tiny import tiny_processor, tiny_rows, tiny_solver


@pytest.fixture
def messages(caplog, monkeypatch):
    """Returns the warnings of unknown tokens so far."""
    monkeypatch.setattr(unknown_tokens.logger, "propagate", True)
    return lambda: [record.message for record in caplog.records if "not in the vocabulary" in record.message]


def unreadable_rows():
    return [{**row, "text": "鸡鹅羊猪，3个" + row["text"]} for row in tiny_rows(12)]


def solver_trainer(folder, rows):
    processor = tiny_processor(max_length=64)
    args = SolverTrainingConfig(folder, **QUIET)
    return SolverTrainer(tiny_solver(processor), args, train_dataset=rows, processing_class=processor)


def pretraining_trainer(folder, rows):
    processor = text_processor()
    args = PreTrainingConfig(folder, pos_loss_weight=0, validation_fraction=0.2, **QUIET)
    texts = [row["text"] + "小明" * number for number, row in enumerate(rows)]
    return PreTrainingTrainer(tiny_student(processor), args, train_dataset=texts, processing_class=processor)


@pytest.mark.parametrize("make_trainer", [solver_trainer, pretraining_trainer])
def test_trainers_warn_of_texts_that_the_tokenizer_cannot_read(make_trainer, messages, tmp_path):
    make_trainer(str(tmp_path / "readable"), tiny_rows(12))
    assert not messages()
    make_trainer(str(tmp_path / "unreadable"), unreadable_rows())
    [message] = messages()
    assert "'鸡', '鹅', '羊' in '鸡鹅羊猪，" in message
    assert "'bert-base-chinese'" in message


def test_tokenizers_of_student_and_teacher_are_both_warned_of(messages, tmp_path):
    processor = tiny_processor(max_length=64)
    teacher_processor = other_processor(processor)
    teacher = in_other_tokens(tiny_solver(processor, layers=4, seed=1), processor, teacher_processor)
    args = DistillationConfig(str(tmp_path), hidden_loss=None, embedding_weight=0.0, **QUIET)
    processors = {"processing_class": processor, "teacher_processing_class": teacher_processor}
    # The teacher knows one of these tokens, the student none.
    DistillationTrainer(tiny_solver(processor), teacher, args, train_dataset=unreadable_rows(), **processors)
    student_message, teacher_message = messages()
    assert "'鸡', '鹅', '羊'" in student_message
    assert "vocabulary of the tokenizer" in student_message
    assert "'鹅', '羊', '猪'" in teacher_message
    assert "vocabulary of the tokenizer of teacher 1" in teacher_message
