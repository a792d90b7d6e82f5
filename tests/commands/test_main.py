import dataclasses
import os
import re
import shlex
import subprocess
import sys
from importlib.metadata import PackageNotFoundError

import pytest

from hf_mwp import __version__
from hf_mwp.commands.building.solver import SolverArguments
from hf_mwp.commands.main import COMMANDS, main
from hf_mwp.commands.options.run_options import RunArguments
from hf_mwp.commands.options.stages import command_module
from hf_mwp.commands.tasks.data_options import DataArguments
from hf_mwp.solver.training import SolverTrainingConfig
from tests.slow_parameters import slow_except


def help_of(capsys, *argv):
    with pytest.raises(SystemExit) as stopped:
        main([*argv])
    assert stopped.value.code == 0
    return capsys.readouterr().out


def test_help_lists_the_commands(capsys):
    assert main(["--help"]) == 0
    output = capsys.readouterr().out
    assert all(f"  {name} " in output for name in COMMANDS)
    assert main([]) == 2


@pytest.mark.parametrize("command", COMMANDS)
def test_each_command_has_help(command, capsys):
    assert f"usage: hf-mwp {command} " in help_of(capsys, command, "--help")


@pytest.mark.parametrize("command", COMMANDS)
def test_help_has_examples_that_are_parsed(command, capsys, monkeypatch):
    module = command_module(command)
    output = help_of(capsys, command, "--help")
    calls = []
    for example in module.EXAMPLES:
        assert f"\n  {example}\n" in output
        words = shlex.split(example.partition(" > ")[0])
        assert words[:2] == ["hf-mwp", command]
        if command == "run":
            args, _ = module.make_parser().parse_known_args(words[2:])
            calls.append(args.recipe)
        else:
            monkeypatch.setattr(module, "run", lambda *args: calls.append(args))
            assert main(words[1:]) == 0
    assert len(calls) == len(module.EXAMPLES) >= 1


def test_help_all_lists_every_field(capsys):
    output = help_of(capsys, "train", "--help", "all")
    for dataclass_type in (DataArguments, SolverArguments, RunArguments, SolverTrainingConfig):
        for field in dataclasses.fields(dataclass_type):
            assert not field.init or f"--{field.name}" in output


@pytest.mark.parametrize("command", ["train", "distill", "pretrain"])
def test_help_of_training_lists_common_options_alone(command, capsys):
    output = help_of(capsys, command, "--help")
    assert "--num_train_epochs" in output
    assert "--adam_beta1" not in output
    assert 8 <= len(re.findall(r"^  --", output, re.MULTILINE)) <= 24


def test_unknown_command_is_named(capsys):
    assert main(["evalute"]) == 2
    assert "`hf-mwp evaluate`" in capsys.readouterr().err


def test_errors_are_one_line(capsys):
    assert main(["solve", "--model", "nowhere/at/all", "1 and 2"]) == 1
    error = capsys.readouterr().err
    assert error.startswith("hf-mwp: ")
    assert "nowhere/at/all" in error
    assert error.count("\n") == 1


def test_errors_have_a_traceback_on_demand(monkeypatch):
    monkeypatch.setenv("HF_MWP_TRACEBACK", "1")
    with pytest.raises(Exception, match="nowhere/at/all"):
        main(["solve", "--model", "nowhere/at/all", "1 and 2"])


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (ModuleNotFoundError("No module named 'jieba'", name="jieba"), "jieba. `pip install 'hf-mwp[cli]'`"),
        (ImportError("`adamw_bnb_8bit` needs bitsandbytes"), "hf-mwp: `adamw_bnb_8bit` needs bitsandbytes"),
        (PackageNotFoundError("deepspeed>=0.9.3"), "hf-mwp: No package metadata was found for deepspeed>=0.9.3"),
        (RuntimeError("WandbCallback requires wandb to be installed."), "hf-mwp: WandbCallback requires wandb"),
    ],
)
def test_missing_package_is_named(error, message, monkeypatch, error_of):
    def fail(*_):
        raise error

    monkeypatch.setattr("hf_mwp.commands.main.run_command", fail)
    assert message in error_of("train")


def test_version_is_printed_without_heavy_imports():
    argv = [sys.executable, "-X", "importtime", "-m", "hf_mwp", "--version"]
    result = subprocess.run(argv, capture_output=True, text=True)
    assert result.stdout == f"hf-mwp {__version__}\n"
    imported = {line.rpartition("|")[2].strip() for line in result.stderr.splitlines()}
    assert "hf_mwp" in imported
    assert not {"torch", "transformers"} & imported


def run_without_reader(argv, **streams):
    """Run a command in a process whose `streams` are pipes that nobody reads."""
    read_end, write_end = os.pipe()
    os.close(read_end)
    streams = {"stderr": subprocess.PIPE, "stdout": write_end} | dict.fromkeys(streams, write_end)
    result = subprocess.run([sys.executable, "-m", "hf_mwp", *argv], text=True, **streams)
    os.close(write_end)
    return result


SOLVE = ["solve", "--model", "{model}", *["小明有4个苹果和2个梨，一共有多少个水果？"] * 50]


@pytest.mark.parametrize(
    ("argv", "status", "unbuffered"),
    [
        (["--help"], 0, ""),
        *slow_except(
            [
                (SOLVE, 1, ""),  # the console of `rich` exits with 1
                (["--help"], 0, "1"),
                (["publish", "--help"], 0, ""),
                (["evalute"], 2, ""),
                ([*SOLVE, "--json"], 0, "1"),
            ]
        ),
    ],
)
def test_command_ends_quietly_if_nobody_reads(argv, status, unbuffered, solver_folder, monkeypatch):
    monkeypatch.setenv("PYTHONUNBUFFERED", unbuffered)
    result = run_without_reader([word.format(model=solver_folder) for word in argv])
    assert result.returncode == status
    if status == 2:
        assert result.stderr.startswith("hf-mwp: ")
    else:
        assert result.stderr == ""


def test_command_ends_if_nobody_reads_its_errors():
    assert run_without_reader(["evalute"], stderr=True).returncode in (0, 2)
