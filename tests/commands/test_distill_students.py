"""Where the student of `hf-mwp distill` comes from, and what it learns."""

import re
from types import SimpleNamespace

import pytest
import torch
import yaml
from safetensors.torch import load_file

from hf_mwp.commands.building import load_solver, make_student, student_shape
from hf_mwp.commands.building.student import StudentArguments
from hf_mwp.commands.main import main
from hf_mwp.commands.options.parsing import parse
from hf_mwp.commands.options.stages import types_of
from hf_mwp.compress.models import MwpStudentForPreTraining
from hf_mwp.solver.batches.mwp_processor import MwpProcessor
from hf_mwp.solver.models import MwpSolver
from tests.commands.folders import logged_names, read_json, save_solver, training_log
from tests.other_tokens import in_other_tokens, other_processor
from tests.slow_parameters import slow_after
from tests.tiny import tiny_processor, tiny_rows, tiny_solver


SMALL = ["--use_cpu", "--max_steps=1", "--per_device_train_batch_size=8", "--no_test", "--logging_steps=1"]
SIZES = ["--student_hidden_size=8", "--student_intermediate_size=12", "--student_heads=2"]


@pytest.fixture(scope="module")
def teacher(tmp_path_factory):
    return save_solver(tmp_path_factory.mktemp("teacher"), layers=4, dropout=0.2)


@pytest.fixture
def argv(teacher, problems, tmp_path):
    """Arguments of the command, which writes its student to the folder `student`."""
    argv = ["distill", "--teacher", str(teacher), "--dataset", str(problems)]
    return [*argv, "--output_dir", str(tmp_path / "student"), *SMALL]


@pytest.fixture
def distil(argv, tmp_path):
    """Function that runs the command and returns the folder of the student."""

    def distil(*options):
        assert main([*argv, *options]) == 0
        return tmp_path / "student"

    return distil


def student_of(teacher, *options):
    """Return the student that the options of the command describe."""
    argv = ["--teacher", str(teacher), "--dataset", "math23k", *options]
    _, _, student_args, _, _ = parse("distill", "", types_of("distill"), argv)
    return make_student(*load_solver(str(teacher)), tiny_rows(36, 1), student_args)


def test_pretrained_encoder_becomes_the_student(teacher, tmp_path):
    processor = tiny_processor(max_length=64)
    config = tiny_solver(processor, hidden_size=12, seed=5).encoder.config
    config.num_pos_tags = 4
    MwpStudentForPreTraining(config).save_pretrained(tmp_path)
    processor.save_pretrained(tmp_path)
    student = student_of(teacher, "--student_encoder", str(tmp_path), "--student_dropout=0.3")
    pretrained = load_file(tmp_path / "model.safetensors")
    for name, value in student.encoder.state_dict().items():
        torch.testing.assert_close(value, pretrained[f"mwp_student.{name}"])
    assert student.encoder.config.hidden_dropout_prob == student.decoder.config.dropout == pytest.approx(0.3)


def test_pretrained_encoder_with_another_tokenizer_is_refused(argv, tmp_path, error_of):
    processor = tiny_processor()
    tiny_solver(processor).encoder.save_pretrained(tmp_path)
    processor.tokenizer.add_tokens(["鸡"])
    processor.save_pretrained(tmp_path)
    assert re.search(r"tokenizer.*\b1 tokens.*'鸡'", error_of(*argv, "--student_encoder", tmp_path))


@pytest.fixture(scope="module")
def solver_in_other_tokens(tmp_path_factory):
    """The folder of a solver with another tokenizer."""
    folder = tmp_path_factory.mktemp("other")
    processor = tiny_processor(max_length=64)
    other = other_processor(processor, max_length=64)
    in_other_tokens(tiny_solver(processor, seed=1), processor, other).save_pretrained(folder)
    other.save_pretrained(folder)
    return folder


@pytest.mark.slow
def test_teachers_may_have_tokenizers_of_their_own(teacher, solver_in_other_tokens, distil):
    teachers = [str(teacher), str(solver_in_other_tokens)]
    folder = distil("--teacher", *teachers, "--student_layers=2", "--learning_rate=0")
    assert yaml.safe_load((folder / "run_config.yaml").read_text())["teacher"] == teachers
    student_weights = MwpSolver.from_pretrained(folder).encoder.state_dict()
    teacher_weights = MwpSolver.from_pretrained(teacher).encoder.state_dict()
    for name, value in student_weights.items():
        torch.testing.assert_close(value, teacher_weights[name])


@pytest.mark.slow
def test_student_may_have_a_tokenizer_of_its_own(teacher, solver_in_other_tokens, argv, distil, error_of):
    options = ["--student", str(solver_in_other_tokens)]
    error = error_of(*argv, *options)
    assert re.search("tokenizers.* hidden, embedding .*`embedding_weight=0`", error)
    folder = distil(*options, "--hidden_loss=none", "--embedding_weight=0")
    assert yaml.safe_load((folder / "run_config.yaml").read_text())["teacher"] == [str(teacher)]
    assert "鸡" in MwpProcessor.from_pretrained(folder).tokenizer.get_vocab()


@pytest.mark.slow
def test_all_hidden_losses_are_trained_together(distil):
    losses = "mse attention attention_mean fsp nst cka cosine procrustes gram pkd ckd minilm".split()
    folder = distil("--student_layers=2", "--prediction_loss=dkd", f"--hidden_loss={'+'.join(losses)}")
    logged = logged_names(folder)
    for loss in losses:
        assert any(name.startswith(f"loss_{loss}") for name in logged), loss
    # Attention maps are computed only during training.
    assert MwpSolver.from_pretrained(folder).encoder.config._attn_implementation == "sdpa"


def test_cka_of_a_narrow_student_is_trained_from_yaml(distil, tmp_path):
    fields = {"hidden_loss": "cka", "embedding_weight": 0, "kl_direction": "reverse", "pool_statistics": True}
    fields |= {"gradient_accumulation_steps": 2, "student_layers": 2, "student_init": "project"}
    (tmp_path / "cka.yaml").write_text(yaml.safe_dump(fields))
    folder = distil("--config", str(tmp_path / "cka.yaml"), *SIZES)
    (losses,) = (entry for entry in training_log(folder) if "loss_soft" in entry)
    assert 0 < losses["loss_hidden_1"] < 1
    assert 0 < losses["loss_hidden_2"] < 1
    assert "loss_embedding" not in losses
    assert MwpSolver.from_pretrained(folder).encoder.config.hidden_size == 8


@pytest.mark.parametrize(
    ("options", "message"),
    slow_after(
        5,
        [
            (["--student_hidden_size=8"], "`student_hidden_size`.*`student_init=cut`"),
            (["--student=a", "--student_encoder=b"], "student.*student_encoder"),
            (["--student_encoder=b", "--student_init=project"], "`student_init`"),
            (["--student_init=project"], r"hidden_size=312 .*\b16\b"),
            (["--student_init=random", "--student_hidden_size=9"], "hidden_size=9 .*num_attention_heads="),
            (["--student_encoder=/no/such/folder"], "/no/such/folder"),
            (["--layer_mapping=1:9", "--student_layers=2"], "layer 9 of the teacher"),
            (["--student=a", "--student_layers=3"], "`student_layers`.*`student`"),
            (["--student=a", "--student_layer_choice=first"], "`student_layer_choice`.*`student`"),
            (["--student=a", "--student_dropout=0"], "`student_dropout`.*`student`"),
            (["--student_encoder=b", "--student_layers=2"], "`student_layers`.*`student_encoder`"),
            (
                ["--student_init=random", "--student_layer_choice=last"],
                "`student_layer_choice`.*`student_init=random`",
            ),
            (["--student_layers=0,2", "--student_layer_choice=last"], "`student_layer_choice`.*`student_layers`"),
            (["--student_layers=some"], "`student_layers`.*'some'"),
            (["--teacher_cache_dir=cache"], "`teacher_cache_dir`.*`cache_teacher_outputs`"),
        ],
    ),
)
def test_impossible_students_are_named(argv, options, message, error_of):
    assert re.search(message, error_of(*argv, *options))


def test_default_student_has_three_layers():
    teacher = SimpleNamespace(config=SimpleNamespace(num_hidden_layers=12))
    assert StudentArguments().layers_of(teacher) == [0, 1, 2]


@pytest.mark.slow
def test_sizes_of_the_student_meet_a_target(distil, monkeypatch):
    monkeypatch.setattr(student_shape, "LAYERS", (1,))
    monkeypatch.setattr(student_shape, "WIDTHS", {8: (16, 2), 16: (24, 2)})
    folder = distil("--student_init=random", "--target_mb=1", "--hidden_loss=none", "--embedding_weight=0")
    config = MwpSolver.from_pretrained(folder).encoder.config
    assert (config.num_hidden_layers, config.hidden_size, config.intermediate_size) == (1, 16, 24)
    record = read_json(folder / "shape.json")
    assert record["request"]["megabytes"] == 1
    assert record["chosen"]["hidden_size"] == 16
    # The record has the options as they were given.
    assert yaml.safe_load((folder / "run_config.yaml").read_text("utf-8"))["target_mb"] == 1
