import json
from dataclasses import replace

import pytest
import torch
from transformers import BertConfig

from hf_mwp import load_solver, make_student
from hf_mwp.commands.building import StudentShape, choose_student_shape, student_shape
from hf_mwp.commands.building.pretraining import PretrainingArguments
from hf_mwp.commands.building.student import StudentArguments
from hf_mwp.commands.building.student_shape import apply_size_targets, candidate_sizes, measure_shape
from hf_mwp.commands.export import ExportArguments, export_solver
from hf_mwp.compress.models import MwpStudentConfig, MwpStudentModel
from hf_mwp.compress.trainers import DistillationConfig
from hf_mwp.solver.models import MwpSolver
from hf_mwp.utils.usage_error import UsageError
from tests.tiny import tiny_processor, tiny_rows, tiny_solver


SIZES = ("num_hidden_layers", "hidden_size", "num_attention_heads", "intermediate_size")


@pytest.fixture
def small(monkeypatch):
    """Candidates of one and two layers, 8 and 16 wide."""
    monkeypatch.setattr(student_shape, "LAYERS", (1, 2))
    monkeypatch.setattr(student_shape, "WIDTHS", {8: (16, 2), 16: (24, 2)})


def sizes_of(*values):
    return dict(zip(SIZES, values, strict=True))


@pytest.fixture
def measured(monkeypatch):
    """Costs by hand instead of by the clock: a layer takes a millisecond, a column of width a tenth of a megabyte."""
    calls = []

    def measure(processor, sizes):
        calls.append(sizes)
        layers, width, _, neurons = (sizes[name] for name in SIZES)
        return StudentShape(layers, width, 2, neurons, 1000, layers + neurons / 100, width / 10)

    monkeypatch.setattr(student_shape, "measure_shape", measure)
    return calls


def test_candidates_are_no_larger_than_the_encoder():
    assert len(candidate_sizes()) == 5 * 5 * 2
    config = MwpStudentConfig(num_hidden_layers=3, hidden_size=312, intermediate_size=[1200, 1100, 1200])
    candidates = candidate_sizes(config)
    assert {sizes["num_hidden_layers"] for sizes in candidates} == {1, 2, 3}
    # 312 has 1200 neurons, more than the second layer's.
    assert {sizes["hidden_size"] for sizes in candidates} == {128, 192, 256}
    assert len(candidates) == 3 * 3 * 2
    assert candidates[-1] == sizes_of(3, 256, 8, 512)


def test_small_encoder_has_students_of_its_own_width():
    config = BertConfig(num_hidden_layers=2, hidden_size=128, num_attention_heads=2, intermediate_size=512)
    one_layer = [sizes_of(1, 128, 2, 512), sizes_of(1, 128, 2, 256)]
    two_layers = [sizes_of(2, 128, 2, 512), sizes_of(2, 128, 2, 256)]
    assert candidate_sizes(config) == one_layer + two_layers


@pytest.mark.slow
def test_measured_shape_is_that_of_its_export(tmp_path):
    processor = tiny_processor()
    sizes = sizes_of(2, 64, 2, 96)
    shape = measure_shape(processor, sizes)
    config = MwpStudentConfig(vocab_size=len(processor.tokenizer), **sizes)
    solver = MwpSolver.from_encoder_decoder_pretrained(MwpStudentModel(config, add_pooling_layer=False), processor)
    solver.save_pretrained(tmp_path / "solver")
    processor.save_pretrained(tmp_path / "solver")
    report = export_solver(ExportArguments(str(tmp_path / "solver"), str(tmp_path / "exported"), quantize="int8"))
    # Except for the record of the export and the default search, some hundred bytes.
    assert shape.megabytes == pytest.approx(report.megabytes, abs=0.001)
    assert shape.parameters == sum(parameter.numel() for parameter in solver.parameters())
    assert shape.layer_weights == 2 * (4 * 64 * 64 + 2 * 64 * 96)
    assert shape.sizes == sizes
    assert shape.milliseconds > 0


@pytest.mark.slow
def test_larger_students_cost_more():
    small = measure_shape(tiny_processor(), sizes_of(1, 16, 2, 32))
    large = measure_shape(tiny_processor(), sizes_of(4, 192, 6, 768))
    assert small.milliseconds < large.milliseconds
    assert small.megabytes < large.megabytes


def test_measuring_does_not_change_random_numbers():
    torch.manual_seed(0)
    expected = torch.rand(1)
    torch.manual_seed(0)
    measure_shape(tiny_processor(), sizes_of(1, 8, 2, 8))
    assert torch.rand(1) == expected


@pytest.mark.parametrize(
    ("targets", "expected"),
    [
        ({}, (2, 16, 24)),
        ({"target_ms": 2.2}, (2, 16, 12)),
        ({"target_mb": 1}, (2, 8, 16)),
        # 1 layer of 16 has 4 * 256 + 32 * 24 weights, 2 of 8 have 2 * (4 * 64 + 16 * 16).
        ({"target_ms": 2}, (1, 16, 24)),
        ({"target_ms": 2, "target_mb": 1}, (1, 8, 16)),
    ],
)
def test_largest_student_that_meets_the_targets_is_chosen(small, measured, targets, expected):
    shape, shapes = choose_student_shape(tiny_processor(), **targets)
    assert (shape.num_hidden_layers, shape.hidden_size, shape.intermediate_size) == expected
    assert len(shapes) == 8


def test_wider_target_never_chooses_a_smaller_student(small, measured):
    weights = []
    for target in (1.1, 1.2, 1.5, 2.1, 3):
        shape, _ = choose_student_shape(tiny_processor(), target_ms=target)
        weights.append(shape.layer_weights)
    assert weights == sorted(weights)
    assert len(set(weights)) > 2


def test_error_for_an_impossible_target_names_the_smallest_student(small, measured):
    with pytest.raises(UsageError, match=r"0\.5 ms and 3 MB.*1 x 8, 2 heads, 8 neurons: 1\.08 ms, 0\.80 MB"):
        choose_student_shape(tiny_processor(), target_ms=0.5, target_mb=3)


def test_targets_are_positive_and_apply_only_to_new_sizes():
    for fields in ({"target_ms": 0}, {"target_mb": -1}):
        with pytest.raises(ValueError, match="greater than 0"):
            StudentArguments(student_init="project", **fields)
        with pytest.raises(ValueError, match="greater than 0"):
            PretrainingArguments(encoder="a", **fields)
    for fields in ({}, {"student_init": "prune"}, {"student": "a"}, {"student_encoder": "a"}):
        with pytest.raises(ValueError, match="target_ms"):
            StudentArguments(target_ms=3, **fields)
    for fields in ({"student_heads": 4}, {"student_layers": "2"}):
        with pytest.raises(ValueError, match="chosen to meet the target"):
            StudentArguments(student_init="random", target_ms=3, **fields)


def test_choice_is_saved_in_the_output_folder(small, measured, tmp_path):
    processor = tiny_processor()
    teacher = tiny_solver(tiny_processor(), layers=2)
    config = DistillationConfig(str(tmp_path), report_to="none")
    messages = []
    first = StudentArguments(student_init="project", target_ms=2.2)
    args = replace(first)
    apply_size_targets(args, teacher, processor, config, messages.append)
    assert (args.student_layers, args.student_hidden_size, args.student_intermediate_size) == ("2", 16, 12)
    assert not args.targets
    assert "2 x 16, 2 heads, 12 neurons: 2.12 ms" in messages[0]
    record = json.loads((tmp_path / "shape.json").read_text("utf-8"))
    assert record["chosen"]["milliseconds"] == 2.12
    assert len(record["measured"]) == 8
    num_measured = len(measured)
    again = replace(first)
    apply_size_targets(again, teacher, processor, config)
    assert again == args
    assert len(measured) == num_measured
    # Another target is another choice.
    apply_size_targets(StudentArguments(student_init="project", target_ms=1.2), teacher, processor, config)
    assert len(measured) == 2 * num_measured


def test_pretrained_student_has_layers_at_equal_distances(small, measured):
    args = PretrainingArguments(encoder="a", project_to={"hidden_size": 99}, encoder_layers="3", target_ms=1.3)
    apply_size_targets(args, tiny_solver(tiny_processor(), layers=2).encoder, tiny_processor())
    assert args.project_to == {"hidden_size": 16, "num_attention_heads": 2, "intermediate_size": 24}
    # One layer at equal distances from two is the last.
    assert args.encoder_layers == [1]
    args = PretrainingArguments(encoder_config={"hidden_size": 99, "num_pos_tags": 3}, tokenizer="a", target_mb=1)
    apply_size_targets(args, None, tiny_processor())
    assert args.encoder_config == {"num_pos_tags": 3, **sizes_of(2, 8, 2, 16)}


def test_student_is_made_for_a_target(small, measured):
    processor = tiny_processor()
    teacher = tiny_solver(processor, layers=2)
    options = StudentArguments(student_init="project", target_ms=1.2)
    student = make_student(teacher, processor, tiny_rows(8), options)
    assert student.encoder.config.num_hidden_layers == 1
    assert student.encoder.config.intermediate_size == 12
    # The options may be used for another teacher.
    assert options.target_ms == 1.2


def test_target_applies_only_to_solvers_of_the_runtime(solver_folder):
    solver, _ = load_solver(str(solver_folder))
    with pytest.raises(UsageError, match="NumPy runtime"):
        apply_size_targets(StudentArguments(student_init="random", target_ms=1), solver, None)
