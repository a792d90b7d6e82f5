"""Problems in a teacher's own tokens."""

import pytest
import torch
from datasets import Dataset

from hf_mwp.compress.distillation.ensemble_teacher import TEACHER_INPUTS
from hf_mwp.compress.distillation.live_teacher import TeacherInputsCollator, add_teacher_inputs
from hf_mwp.runtime.problems import MathWordProblem
from hf_mwp.solver.batches.mwp_collator import MwpCollator
from tests.other_tokens import other_processor
from tests.tiny import tiny_athena_solver, tiny_dataset, tiny_problems, tiny_processor


@pytest.fixture(scope="module")
def processors():
    ours = tiny_processor()
    return ours, other_processor(ours)


def test_rows_and_batches(processors):
    ours, theirs = processors
    dataset = add_teacher_inputs(ours.prepare_dataset(tiny_dataset(6)), {1: theirs})
    rows = list(dataset)
    batch = TeacherInputsCollator(MwpCollator(ours), {1: theirs})(rows)
    expected = theirs(tiny_problems(6))
    own = batch[TEACHER_INPUTS]["1"]
    assert set(own) == set(expected) and all(torch.equal(own[name], expected[name]) for name in expected)
    assert torch.equal(batch["input_ids"], ours(tiny_problems(6))["input_ids"])
    assert not torch.equal(batch["input_ids"], own["input_ids"])


def test_a_teacher_that_reads_the_question_gets_its_own_tokens_of_it():
    ours = tiny_processor()
    tiny_athena_solver(ours)
    theirs = other_processor(ours, extra_columns=ours.extra_columns, max_length=12)
    dataset = add_teacher_inputs(ours.prepare_dataset(tiny_dataset(6)), {0: theirs})
    own = TeacherInputsCollator(MwpCollator(ours), {0: theirs})(list(dataset))[TEACHER_INPUTS]["0"]
    expected = theirs(tiny_problems(6))["question_positions"]
    assert torch.equal(own["question_positions"], expected) and expected.max() < 12
    assert ours(tiny_problems(6))["question_positions"].max() >= 12


def test_a_teacher_scores_the_numbers_that_the_student_reads():
    problem = MathWordProblem("小明有4个苹果，又买了2个，吃了3个", "x=4")
    for ours, theirs, expected in ((6, 64, [[4]]), (64, 6, [[4, -1, -1]])):
        student = tiny_processor(max_length=ours)
        teacher = tiny_processor(max_length=theirs)
        rows = Dataset.from_list([{"text": problem.text, "equation": problem.equation}])
        dataset = add_teacher_inputs(student.prepare_dataset(rows), {0: teacher})
        batch = TeacherInputsCollator(MwpCollator(student), {0: teacher})(list(dataset))
        assert batch[TEACHER_INPUTS]["0"]["number_positions"].tolist() == expected


def test_rows_without_teacher_inputs_are_as_ever(processors):
    ours, theirs = processors
    rows = list(ours.prepare_dataset(tiny_dataset(2)))
    batch = TeacherInputsCollator(MwpCollator(ours), {0: theirs})(rows)
    assert set(batch) == set(MwpCollator(ours)(rows))


def test_rows_without_texts(processors):
    rows = [{"input_ids": [2, 5, 3], "number_positions": [1], "number_groups": [0], "labels": [5]}]
    with pytest.raises(ValueError, match="tokenizer.*columns.*load_mwp_dataset"):
        add_teacher_inputs(Dataset.from_list(rows), {0: processors[1]})
