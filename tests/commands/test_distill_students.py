"""Where the student of `hf-mwp distill` comes from, and what it learns."""

import json
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
from hf_mwp.compress.distillation.objectives import (
    DKD,
    FSP,
    PKD,
    AttentionMaps,
    AttentionRelations,
    ContextRelations,
    EmbeddingOutputs,
    HardLabels,
    HiddenStates,
)
from hf_mwp.compress.models import MwpStudentForPreTraining
from hf_mwp.compress.trainers.distillation_config import default_objectives
from hf_mwp.solver.batches.mwp_processor import MwpProcessor
from hf_mwp.solver.models import MwpSolver
from tests.other_tokens import in_other_tokens, other_processor
from tests.tiny import tiny_processor, tiny_rows, tiny_solver


SMALL = ["--use_cpu", "--max_steps=1", "--per_device_train_batch_size=8", "--no_test", "--logging_steps=1"]
SIZES = ["--student_hidden_size=8", "--student_intermediate_size=12", "--student_heads=2"]


@pytest.fixture(scope="module")
def teacher(tmp_path_factory):
    folder = tmp_path_factory.mktemp("teacher")
    processor = tiny_processor(max_length=64)
    tiny_solver(processor, layers=4, dropout=0.2).save_pretrained(folder)
    processor.save_pretrained(folder)
    return folder


def distil(teacher, problems, folder, *options):
    argv = ["distill", "--teacher", str(teacher), "--dataset", str(problems), "--output_dir", str(folder)]
    return main([*argv, *SMALL, *options])


def made(teacher, *options):
    """The student that the options of the command ask for, of the teacher's solver and processor."""
    argv = ["--teacher", str(teacher), "--dataset", "math23k", *options]
    _, _, student_args, _, _ = parse("distill", "", types_of("distill"), argv)
    return make_student(*load_solver(str(teacher)), tiny_rows(36, 1), student_args)


@pytest.mark.parametrize(("start", "dropout"), [("project", 0.2), ("random", 0.1)])
def test_students_of_other_widths(teacher, start, dropout):
    student = made(teacher, f"--student_init={start}", "--student_layers=2", *SIZES)
    config = student.encoder.config
    assert (config.num_hidden_layers, config.hidden_size, config.intermediate_size) == (2, 8, 12)
    assert config.heads_per_layer == [2, 2] and config.hidden_dropout_prob == pytest.approx(dropout)
    assert student.decoder.config.hidden_size == student.decoder.config.encoder_hidden_size == 8
    assert student.decoder.config.operator_embedding_size == 8


def test_a_projected_student_is_trained(teacher, problems, tmp_path):
    assert distil(teacher, problems, tmp_path, "--student_init=project", "--student_layers=2", *SIZES) == 0
    assert MwpSolver.from_pretrained(tmp_path).encoder.config.hidden_size == 8
    history = json.loads((tmp_path / "trainer_state.json").read_text())["log_history"]
    assert any({"loss_hidden_1", "loss_hidden_2", "loss_soft"} <= set(entry) for entry in history)


def test_a_pretrained_encoder(teacher, tmp_path):
    processor = tiny_processor(max_length=64)
    config = tiny_solver(processor, hidden_size=12, seed=5).encoder.config
    config.num_pos_tags = 4
    MwpStudentForPreTraining(config).save_pretrained(tmp_path / "pretrained")
    processor.save_pretrained(tmp_path / "pretrained")
    student = made(teacher, "--student_encoder", str(tmp_path / "pretrained"), "--student_dropout=0.3")
    pretrained = load_file(tmp_path / "pretrained" / "model.safetensors")
    for name, value in student.encoder.state_dict().items():
        torch.testing.assert_close(value, pretrained[f"mwp_student.{name}"])
    assert student.encoder.config.hidden_dropout_prob == student.decoder.config.dropout == pytest.approx(0.3)


def test_a_pretrained_encoder_with_another_tokenizer(teacher, problems, tmp_path, capsys):
    processor = tiny_processor()
    tiny_solver(processor).encoder.save_pretrained(tmp_path)
    processor.tokenizer.add_tokens(["鸡"])
    processor.save_pretrained(tmp_path)
    assert distil(teacher, problems, tmp_path / "out", "--student_encoder", str(tmp_path)) == 1
    assert re.search(r"tokenizer.*\b1 tokens.*'鸡'", capsys.readouterr().err)


@pytest.fixture(scope="module")
def in_its_own_tokens(teacher, tmp_path_factory):
    """Another teacher, in a folder, with another tokenizer."""
    folder = tmp_path_factory.mktemp("other")
    processor = tiny_processor(max_length=64)
    other = other_processor(processor, max_length=64)
    in_other_tokens(tiny_solver(processor, seed=1), processor, other).save_pretrained(folder)
    other.save_pretrained(folder)
    return folder


def test_several_teachers_one_with_a_tokenizer_of_its_own(teacher, in_its_own_tokens, problems, tmp_path):
    options = ["--teacher", str(teacher), str(in_its_own_tokens), "--student_layers=2", "--learning_rate=0"]
    assert distil(teacher, problems, tmp_path, *options) == 0
    given = yaml.safe_load((tmp_path / "run_config.yaml").read_text())["teacher"]
    assert given == [str(teacher), str(in_its_own_tokens)]
    student = MwpSolver.from_pretrained(tmp_path).encoder
    first = MwpSolver.from_pretrained(teacher).encoder
    for name, value in student.state_dict().items():
        torch.testing.assert_close(value, first.state_dict()[name])


def test_a_student_with_a_tokenizer_of_its_own(teacher, in_its_own_tokens, problems, tmp_path, capsys):
    options = ["--student", str(in_its_own_tokens), "--hidden_loss=none", "--embedding_weight=0"]
    assert distil(teacher, problems, tmp_path / "student", *options) == 0
    assert yaml.safe_load((tmp_path / "student" / "run_config.yaml").read_text())["teacher"] == [str(teacher)]
    assert "鸡" in MwpProcessor.from_pretrained(tmp_path / "student").tokenizer.get_vocab()
    assert distil(teacher, problems, tmp_path / "other", *options[:2]) == 1
    assert re.search("tokenizers.* hidden, embedding .*`embedding_weight=0`", capsys.readouterr().err)


@pytest.mark.parametrize(
    ("name", "found"),
    [
        ("attention", [AttentionMaps]),
        ("attention_mean", [AttentionMaps]),
        ("fsp", [FSP]),
        ("nst", [HiddenStates]),
        ("pkd", [PKD]),
        ("ckd", [ContextRelations]),
        ("minilm", [AttentionRelations]),
        ("mse+attention", [HiddenStates, AttentionMaps]),
    ],
)
def test_knowledge_types(name, found, tmp_path):
    argv = ["--teacher=a", f"--hidden_loss={name}", "--prediction_loss=dkd", "--output_dir", str(tmp_path)]
    *_, config = parse("distill", "", types_of("distill"), argv)
    kinds = [type(objective) for objective in default_objectives(config)]
    assert kinds == [DKD, HardLabels, *found, EmbeddingOutputs]


def test_all_knowledge_types_at_once(teacher, problems, tmp_path):
    names = [
        "mse",
        "attention",
        "attention_mean",
        "fsp",
        "nst",
        "cka",
        "cosine",
        "procrustes",
        "gram",
        "pkd",
        "ckd",
        "minilm",
    ]
    options = ["--student_layers=2", "--prediction_loss=dkd", f"--hidden_loss={'+'.join(names)}"]
    assert distil(teacher, problems, tmp_path, *options) == 0
    history = json.loads((tmp_path / "trainer_state.json").read_text())["log_history"]
    (logged,) = ({*entry} for entry in history if "loss_soft" in entry and "step" in entry and "loss" in entry)
    assert all(any(entry.startswith(f"loss_{name}") for entry in logged) for name in names)
    # Attention is read as long as it is learned.
    assert MwpSolver.from_pretrained(tmp_path).encoder.config._attn_implementation == "sdpa"


def test_cka_of_narrow_students_from_yaml(teacher, problems, tmp_path):
    fields = {"hidden_loss": "cka", "embedding_weight": 0, "kl_direction": "reverse", "pool_statistics": True}
    fields |= {"gradient_accumulation_steps": 2, "student_layers": 2, "student_init": "random"}
    (tmp_path / "cka.yaml").write_text(yaml.safe_dump(fields))
    assert distil(teacher, problems, tmp_path / "student", "--config", str(tmp_path / "cka.yaml"), *SIZES) == 0
    history = json.loads((tmp_path / "student" / "trainer_state.json").read_text())["log_history"]
    (logged,) = (entry for entry in history if "loss_soft" in entry)
    assert 0 < logged["loss_hidden_1"] < 1 and 0 < logged["loss_hidden_2"] < 1 and "loss_embedding" not in logged
    assert MwpSolver.from_pretrained(tmp_path / "student").encoder.config.hidden_size == 8


@pytest.mark.parametrize(
    ("options", "message"),
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
        (["--student_encoder=b", "--student_layer_choice=last"], "`student_layer_choice`.*`student_encoder`"),
        (
            ["--student_init=random", "--student_layer_choice=last"],
            "`student_layer_choice`.*`student_init=random`",
        ),
        (["--student_layers=0,2", "--student_layer_choice=last"], "`student_layer_choice`.*`student_layers`"),
        (["--student_layers=some"], "`student_layers`.*'some'"),
        (["--teacher_cache_dir=cache"], "`teacher_cache_dir`.*`cache_teacher_outputs`"),
    ],
)
def test_impossible_students_are_named(teacher, problems, tmp_path, options, message, capsys):
    assert distil(teacher, problems, tmp_path / "out", *options) == 1
    assert re.search(message, capsys.readouterr().err)


def test_layers_of_the_student_by_default():
    teacher = SimpleNamespace(config=SimpleNamespace(num_hidden_layers=12))
    assert StudentArguments().layers_of(teacher) == [0, 1, 2]


def test_its_sizes_meet_a_target(teacher, problems, tmp_path, monkeypatch):
    monkeypatch.setattr(student_shape, "LAYERS", (1,))
    monkeypatch.setattr(student_shape, "WIDTHS", {8: (16, 2), 16: (24, 2)})
    options = ["--student_init", "random", "--target_mb", "1", "--hidden_loss", "none", "--embedding_weight", "0"]
    assert distil(teacher, problems, tmp_path, *options) == 0
    config = MwpSolver.from_pretrained(tmp_path).encoder.config
    assert (config.num_hidden_layers, config.hidden_size, config.intermediate_size) == (1, 16, 24)
    record = json.loads((tmp_path / "shape.json").read_text("utf-8"))
    assert record["request"]["megabytes"] == 1 and record["chosen"]["hidden_size"] == 16
    # The record has the options as they were given.
    assert yaml.safe_load((tmp_path / "run_config.yaml").read_text("utf-8"))["target_mb"] == 1
