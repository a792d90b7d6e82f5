"""Bottleneck networks and truncated encoders through the command line."""

import re

import pytest

from hf_mwp.commands.building import build_solver
from hf_mwp.commands.options.parsing import parse
from hf_mwp.commands.options.stages import types_of
from hf_mwp.solver.models import MwpSolver
from tests.commands.folders import logged_names
from tests.tiny import tiny_rows


SMALL = ["--use_cpu", "--max_steps=1", "--per_device_train_batch_size=8", "--no_test"]


def build(*options):
    """Return the solver, and its processor, that the options of `hf-mwp train` describe."""
    _, solver_args, *_ = parse("train", "", types_of("train"), ["--dataset=math23k", *options])
    return build_solver(tiny_rows(36, 1), solver_args)


@pytest.fixture(scope="module")
def teacher(encoder, tmp_path_factory):
    """A folder of a teacher whose second layer has a bottleneck network after it."""
    folder = tmp_path_factory.mktemp("bottlenecks")
    options = ["--encoder_layers=1,0", "--bottleneck_layers=2", "--bottleneck_size=6"]
    for content in build("--encoder", str(encoder), *options):
        content.save_pretrained(folder)
    return folder


def test_solver_has_bottlenecks_after_the_chosen_layers(teacher, solver_folder):
    solver = MwpSolver.from_pretrained(teacher)
    assert solver.config.num_hidden_layers == 2
    assert solver.config.bottleneck_layers == [2]
    assert list(solver.bottlenecks) == ["2"]
    assert solver.bottlenecks["2"].reduce.out_features == 6
    solver, _ = build("--solver", str(solver_folder), "--bottleneck_layers=1", "--bottleneck_size=4")
    assert solver.bottlenecks["1"].reduce.weight.shape == (4, 16)


@pytest.mark.slow
def test_student_learns_narrow_states_and_keeps_the_bottlenecks(teacher, problems, tmp_path, output_of):
    argv = ["distill", "--teacher", teacher, "--student_layers=2", "--dataset", problems, *SMALL]
    output_of(*argv, "--layer_mapping=1:1,2:2", "--output_dir", tmp_path, "--logging_steps=1")
    assert "loss_hidden_2" in logged_names(tmp_path)
    assert list(MwpSolver.from_pretrained(tmp_path).bottlenecks) == ["2"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--bottleneck_layers=3", "--bottleneck_size=6"], "`bottleneck_layers`.* 1 to 2"),
        (["--bottleneck_layers=1"], "`bottleneck_size`"),
        (["--bottleneck_size=6"], "`bottleneck_layers`"),
        (["--bottleneck_layers=first", "--bottleneck_size=6"], "`bottleneck_layers`.*'first'"),
    ],
)
def test_impossible_bottlenecks_are_named(options, message, problems, encoder, tmp_path, error_of):
    argv = ["train", "--encoder", encoder, "--dataset", problems, "--output_dir", tmp_path / "out", *SMALL]
    assert re.search(message, error_of(*argv, *options))
