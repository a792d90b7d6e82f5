"""Problems in a teacher's own tokens."""

import pytest
import torch
from datasets import Dataset

from hf_mwp.compress.distillation.ensemble_teacher import TEACHER_INPUTS
from hf_mwp.compress.distillation.live_teacher import TeacherInputsCollator, add_teacher_inputs
from hf_mwp.solver.batches.mwp_collator import MwpCollator
from tests.other_tokens import other_processor
from tests.tiny import tiny_athena_solver, tiny_dataset, tiny_problems, tiny_processor


@pytest.fixture(scope="module")
def student_processor():
    return tiny_processor()


@pytest.fixture(scope="module")
def teacher_processor(student_processor):
    return other_processor(student_processor)


def collated(student_processor, teacher_processor, dataset, number=0):
    """The batch of a student, with the inputs of one of its teachers."""
    rows = add_teacher_inputs(student_processor.prepare_dataset(dataset), {number: teacher_processor})
    return TeacherInputsCollator(MwpCollator(student_processor), {number: teacher_processor})(list(rows))


def test_a_batch_has_the_tokens_of_both_models(student_processor, teacher_processor):
    batch = collated(student_processor, teacher_processor, tiny_dataset(6), number=1)
    expected = teacher_processor(tiny_problems(6))
    teacher_inputs = batch[TEACHER_INPUTS]["1"]
    assert teacher_inputs.keys() == expected.keys()
    for name, value in expected.items():
        assert torch.equal(teacher_inputs[name], value), name
    assert torch.equal(batch["input_ids"], student_processor(tiny_problems(6))["input_ids"])
    assert not torch.equal(batch["input_ids"], teacher_inputs["input_ids"])


def test_a_teacher_that_reads_the_question_gets_its_own_tokens_of_it():
    processor = tiny_processor()
    tiny_athena_solver(processor)
    teacher_processor = other_processor(processor, extra_columns=processor.extra_columns, max_length=12)
    positions = collated(processor, teacher_processor, tiny_dataset(6))[TEACHER_INPUTS]["0"]["question_positions"]
    expected = teacher_processor(tiny_problems(6))["question_positions"]
    assert torch.equal(positions, expected)
    assert expected.max() < 12
    assert processor(tiny_problems(6))["question_positions"].max() >= 12


@pytest.mark.parametrize(("student_length", "teacher_length", "positions"), [(6, 64, [[4]]), (64, 6, [[4, -1, -1]])])
def test_a_teacher_scores_the_numbers_that_the_student_reads(student_length, teacher_length, positions):
    dataset = Dataset.from_list([{"text": "小明有4个苹果，又买了2个，吃了3个", "equation": "x=4"}])
    processors = (tiny_processor(max_length=student_length), tiny_processor(max_length=teacher_length))
    batch = collated(*processors, dataset)
    assert batch[TEACHER_INPUTS]["0"]["number_positions"].tolist() == positions


def test_rows_without_teacher_inputs_are_collated_for_the_student_alone(student_processor, teacher_processor):
    rows = list(student_processor.prepare_dataset(tiny_dataset(2)))
    collator = MwpCollator(student_processor)
    assert TeacherInputsCollator(collator, {0: teacher_processor})(rows).keys() == collator(rows).keys()


def test_rows_without_texts_are_refused(teacher_processor):
    rows = [{"input_ids": [2, 5, 3], "number_positions": [1], "number_groups": [0], "labels": [5]}]
    with pytest.raises(ValueError, match="tokenizer.*columns.*load_mwp_dataset"):
        add_teacher_inputs(Dataset.from_list(rows), {0: teacher_processor})
