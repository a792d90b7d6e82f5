"""Scripts of `hf-mwp completion`, checked by the shells that are installed."""

import shlex
import shutil
import subprocess
import sys

import pytest

from hf_mwp.commands.main import COMMANDS, main
from tests.slow_parameters import slow_after


pytest.importorskip("shtab")

# Calls the function that bash calls when the user presses the tab key after these words.
TAB = """
source "$1"
shift
COMP_WORDS=("$@")
COMP_CWORD=$(($# - 1))
function=$(complete -p hf-mwp | sed 's/.*-F \\([^ ]*\\).*/\\1/')
$function
printf '%s\\n' "${COMPREPLY[@]}"
"""


@pytest.fixture(scope="module")
def scripts():
    """The script of each shell, printed once."""
    return {}


@pytest.fixture
def script_of(scripts, tmp_path, capsys):
    """Function that writes the script of a shell to a file."""

    def write(shell):
        if shell not in scripts:
            capsys.readouterr()
            assert main(["completion", shell]) == 0
            scripts[shell] = capsys.readouterr().out
        path = tmp_path / f"completion.{shell}"
        path.write_text(scripts[shell], "utf-8")
        return path

    return write


@pytest.mark.parametrize("shell", slow_after(1, ["bash", "zsh", "fish"]))
def test_shell_accepts_the_script(shell, script_of):
    path = script_of(shell)
    text = path.read_text("utf-8")
    for command in COMMANDS:
        assert command in text
    assert "per_device_train_batch_size" in text
    if shutil.which(shell) is not None:
        subprocess.run([shell, "-n", path], check=True)


@pytest.mark.skipif(shutil.which("bash") is None, reason="needs bash")
@pytest.mark.parametrize(
    ("line", "completed"),
    [
        ("hf-mwp pub", ["publish"]),
        ("hf-mwp p", ["pretrain", "prune", "pseudo-label", "publish"]),
        ("hf-mwp train --learning_r", ["--learning_rate"]),
        ("hf-mwp train --decoder a", ["athena"]),
        ("hf-mwp run --min_", ["--min_accuracy"]),
        ("hf-mwp completion z", ["zsh"]),
    ],
)
def test_bash_completes_commands_options_and_values(line, completed, script_of):
    path = script_of("bash")
    result = subprocess.run(
        ["bash", "-c", TAB, "tab", path, *shlex.split(line)], capture_output=True, text=True, check=True
    )
    assert sorted(result.stdout.split()) == sorted(completed)


def test_unknown_shell_is_refused(error_of):
    assert "invalid choice: 'csh' (choose from" in error_of("completion", "csh")


def test_missing_package_is_named(monkeypatch, error_of):
    monkeypatch.setitem(sys.modules, "shtab", None)
    assert "needs the package shtab. `pip install 'hf-mwp[cli]'`" in error_of("completion", "bash")
