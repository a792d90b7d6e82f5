import os
import re
import subprocess
import sys
from importlib.metadata import PackageNotFoundError

import pytest

from hf_mwp import __version__
from hf_mwp.commands.main import COMMANDS, main


def test_help_names_the_commands(capsys):
    assert main(["--help"]) == 0
    shown = capsys.readouterr().out
    assert all(f"  {name} " in shown for name in COMMANDS)
    assert main([]) == 2


def test_version(capsys):
    assert main(["--version"]) == 0
    assert capsys.readouterr().out == f"hf-mwp {__version__}\n"


def test_unknown_command(capsys):
    assert main(["evalute"]) == 2
    assert "`hf-mwp evaluate`" in capsys.readouterr().err


@pytest.mark.parametrize("command", COMMANDS)
def test_each_command_has_help(command, capsys):
    with pytest.raises(SystemExit) as stopped:
        main([command, "--help"])
    assert stopped.value.code == 0
    assert f"usage: hf-mwp {command} " in capsys.readouterr().out


def test_help_all_of_train_names_every_field(capsys):
    import dataclasses

    from hf_mwp.commands.building.solver import SolverArguments
    from hf_mwp.commands.options.run_options import RunArguments
    from hf_mwp.commands.tasks.data_options import DataArguments
    from hf_mwp.solver.training import SolverTrainingConfig

    with pytest.raises(SystemExit):
        main(["train", "--help", "all"])
    shown = capsys.readouterr().out
    for dataclass_type in (DataArguments, SolverArguments, RunArguments, SolverTrainingConfig):
        for field in dataclasses.fields(dataclass_type):
            assert not field.init or f"--{field.name}" in shown


def test_errors_are_one_line(capsys, monkeypatch):
    assert main(["solve", "--model", "nowhere/at/all", "1 and 2"]) == 1
    error = capsys.readouterr().err
    assert error.startswith("hf-mwp: ") and "nowhere/at/all" in error and error.count("\n") == 1


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (
            ModuleNotFoundError("No module named 'jieba'", name="jieba"),
            "needs the package jieba. `pip install 'hf-mwp[cli]'`",
        ),
        (ImportError("`adamw_bnb_8bit` needs bitsandbytes"), "hf-mwp: `adamw_bnb_8bit` needs bitsandbytes"),
        (PackageNotFoundError("deepspeed>=0.9.3"), "hf-mwp: No package metadata was found for deepspeed>=0.9.3"),
        (RuntimeError("WandbCallback requires wandb to be installed."), "hf-mwp: WandbCallback requires wandb"),
    ],
)
def test_a_missing_package_is_named(error, told, monkeypatch, capsys):
    def fail(*_):
        raise error

    monkeypatch.setattr("hf_mwp.commands.main.run_command", fail)
    assert main(["train"]) == 1 and told in capsys.readouterr().err


def test_errors_can_show_where_they_come_from(monkeypatch):
    monkeypatch.setenv("HF_MWP_TRACEBACK", "1")
    with pytest.raises(Exception, match="nowhere/at/all"):
        main(["solve", "--model", "nowhere/at/all", "1 and 2"])


def test_as_a_module():
    argv = [sys.executable, "-X", "importtime", "-m", "hf_mwp", "--version"]
    result = subprocess.run(argv, capture_output=True, text=True)
    assert result.stdout == f"hf-mwp {__version__}\n"
    imported = {line.rpartition("|")[2].strip() for line in result.stderr.splitlines()}
    assert "hf_mwp" in imported and not {"torch", "transformers"} & imported


ANSWERED = ["solve", "--model", "{model}", *["小明有4个苹果和2个梨，一共有多少个水果？"] * 50]


@pytest.mark.parametrize("unbuffered", ["", "1"])
@pytest.mark.parametrize(
    ("argv", "status"),
    [
        (["--help"], 0),
        (["--version"], 0),
        (["train", "--help"], 0),
        (["evalute"], 2),
        (["solve", "--model", "nowhere/at/all", "1 and 2"], 1),
        (ANSWERED, 1),  # the console of `rich` exits with 1
        ([*ANSWERED, "--json"], 0),
    ],
)
def test_a_reader_that_leaves_ends_a_command_quietly(argv, status, unbuffered, solver_folder):
    read_end, write_end = os.pipe()
    os.close(read_end)
    words = [sys.executable, "-m", "hf_mwp", *(word.format(model=solver_folder) for word in argv)]
    environment = {**os.environ, "PYTHONUNBUFFERED": unbuffered}
    result = subprocess.run(words, stdout=write_end, stderr=subprocess.PIPE, text=True, env=environment)
    os.close(write_end)
    assert result.returncode == status
    assert result.stderr.startswith("hf-mwp: ") if argv[-1] in ("evalute", "1 and 2") else result.stderr == ""


def test_standard_error_with_a_reader_that_leaves():
    read_end, write_end = os.pipe()
    os.close(read_end)
    result = subprocess.run([sys.executable, "-m", "hf_mwp", "evalute"], stdout=write_end, stderr=write_end)
    os.close(write_end)
    assert result.returncode in (0, 2)


@pytest.mark.parametrize("command", ["train", "distill", "pretrain"])
def test_help_of_training_begins_with_what_most_runs_set(command, capsys):
    with pytest.raises(SystemExit) as stopped:
        main([command, "--help"])
    assert stopped.value.code == 0
    shown = capsys.readouterr().out
    assert "--output_dir" in shown and "--num_train_epochs" in shown and "--adam_beta1" not in shown
    assert f"`hf-mwp {command} --help all`" in " ".join(shown.split())
    assert 8 <= len(re.findall(r"^  --", shown, re.MULTILINE)) <= 24
