"""Bottleneck networks and truncated encoders through the command line."""

import json
import re

import pytest

from hf_mwp.commands.building import build_solver
from hf_mwp.commands.main import main
from hf_mwp.commands.options.parsing import parse
from hf_mwp.commands.options.stages import types_of
from hf_mwp.solver.models import MwpSolver
from tests.tiny import tiny_rows


NARROW = ["--bottleneck_layers=2", "--bottleneck_size=6"]
SMALL = ["--use_cpu", "--max_steps=1", "--per_device_train_batch_size=8", "--no_test"]


def built(*options):
    """The solver, and its processor, that the options of `hf-mwp train` ask for."""
    _, solver_args, *_ = parse("train", "", types_of("train"), ["--dataset=math23k", *options])
    return build_solver(tiny_rows(36, 1), solver_args)


@pytest.fixture(scope="module")
def teacher(encoder, tmp_path_factory):
    """A folder of a teacher cut to the encoder's second layer, with a bottleneck network after it, not yet trained."""
    folder = tmp_path_factory.mktemp("bottlenecks") / "teacher"
    solver, processor = built("--encoder", str(encoder), "--encoder_layers=1,0", *NARROW)
    solver.save_pretrained(folder)
    processor.save_pretrained(folder)
    return folder


def test_train(teacher):
    solver = MwpSolver.from_pretrained(teacher)
    assert solver.config.num_hidden_layers == 2 and solver.config.bottleneck_layers == [2]
    assert list(solver.bottlenecks) == ["2"] and solver.bottlenecks["2"].reduce.out_features == 6


def test_narrow_states_teach_a_student_of_their_width(teacher, problems, tmp_path):
    argv = ["distill", "--teacher", str(teacher), "--student_layers=2", "--dataset", str(problems), *SMALL]
    assert main([*argv, "--layer_mapping=1:1,2:2", "--output_dir", str(tmp_path), "--logging_steps=1"]) == 0
    history = json.loads((tmp_path / "trainer_state.json").read_text())["log_history"]
    assert any("loss_hidden_2" in entry for entry in history)
    # Its layers were fitted with the network between them, so it goes along.
    assert list(MwpSolver.from_pretrained(tmp_path).bottlenecks) == ["2"]


def test_an_existing_solver_gets_bottlenecks(solver_folder):
    solver, _ = built("--solver", str(solver_folder), "--bottleneck_layers=1", "--bottleneck_size=4")
    assert solver.bottlenecks["1"].reduce.weight.shape == (4, 16)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--bottleneck_layers=3", "--bottleneck_size=6"], "`bottleneck_layers`.* 1 to 2"),
        (["--bottleneck_layers=1"], "`bottleneck_size`"),
        (["--bottleneck_size=6"], "`bottleneck_layers`"),
        (["--bottleneck_layers=first", "--bottleneck_size=6"], "`bottleneck_layers`.*'first'"),
    ],
)
def test_impossible_bottlenecks_are_named(options, message, problems, encoder, tmp_path, capsys):
    argv = ["train", "--encoder", str(encoder), "--dataset", str(problems), "--output_dir", str(tmp_path / "out")]
    assert main([*argv, *SMALL, *options]) == 1
    assert re.search(message, capsys.readouterr().err)
