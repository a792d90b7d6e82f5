"""The wheel in an environment that has NumPy and tokenizers, and nothing else."""

import importlib.util
import re
import subprocess
import sys
import venv
import zipfile
from email.parser import Parser
from pathlib import Path

import pytest

from hf_mwp import __version__
from hf_mwp.commands.main import COMMANDS


pytestmark = pytest.mark.slow
ROOT = Path(__file__).parents[2]
SOLVER = ROOT / "model_cards" / "mwp-student-3L-gts-math23k-gemma"
TEXT = "小明有4个苹果和2个梨，一共有多少个水果？"
ONLY = ("numpy", "tokenizers")
OF_COMMANDS = ("filelock", "yaml", "rich", "pygments", "markdown_it", "mdurl")


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    """The wheel, built without a network from the files that git knows."""
    pytest.importorskip("build")
    source = tmp_path_factory.mktemp("source")
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True)
    if listed.returncode:
        pytest.skip("this is no git repository")
    for name in listed.stdout.split("\0"):
        if name and (ROOT / name).is_file() and name.split("/")[0] not in ("examples", "tests", "docs"):
            target = source / name
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes((ROOT / name).read_bytes())
    options = ["--wheel", "--no-isolation", "--outdir", str(source / "dist"), str(source)]
    result = subprocess.run([sys.executable, "-m", "build", *options], capture_output=True, text=True)
    assert result.returncode == 0, result.stdout[-2000:] + result.stderr[-2000:]
    (path,) = (source / "dist").iterdir()
    return path


@pytest.fixture(scope="module")
def environment(wheel, tmp_path_factory):
    """A virtual environment with the wheel; links stand for the two packages, so that nothing is downloaded."""
    folder = tmp_path_factory.mktemp("environment")
    venv.create(folder, with_pip=True)
    python = folder / "bin" / "python"
    command = [python, "-m", "pip", "install", "--quiet", "--no-deps", "--no-index", wheel]
    subprocess.run(command, check=True, capture_output=True)
    link(folder, ONLY)
    return folder


def link(environment, packages):
    (target,) = (environment / "lib").glob("python*/site-packages")
    for name in packages:
        source = Path(importlib.util.find_spec(name).origin).parent
        for path in (source, source.with_name(f"{name}.libs")):
            if path.exists() and not (target / path.name).exists():
                (target / path.name).symlink_to(path)


def run(environment, *command):
    program = environment / "bin" / command[0]
    clean = {"PATH": "/usr/bin:/bin", "HOME": str(environment), "LANG": "C.UTF-8"}
    return subprocess.run([program, *command[1:]], capture_output=True, text=True, cwd=environment, env=clean)


def test_solver_needs_two_packages(environment):
    code = f"""
from hf_mwp.runtime import load_solver
import sys
print(load_solver({str(SOLVER)!r})({TEXT!r})[0]["equation"])
print(sorted(set(sys.modules) & {{"torch", "transformers", "datasets", "yaml"}}))
"""
    result = run(environment, "python", "-c", code)
    assert result.stdout.splitlines() == ["4+2", "[]"], result.stderr


def test_commands_are_listed_and_name_the_package_they_lack(environment):
    result = run(environment, "hf-mwp", "--help")
    for name in COMMANDS:
        assert f"\n  {name} " in result.stdout, result.stderr
    assert run(environment, "hf-mwp", "--version").stdout == f"hf-mwp {__version__}\n"
    result = run(environment, "hf-mwp", "solve", TEXT)
    assert result.returncode == 1
    assert re.fullmatch(r"hf-mwp: .*needs the package (rich|yaml).*pip install.*\n", result.stderr)


def test_command_solves_with_the_extra_for_the_runtime(environment):
    link(environment, OF_COMMANDS)
    result = run(environment, "hf-mwp", "solve", "--model", str(SOLVER), "--json", TEXT)
    assert '"equation": "4+2"' in result.stdout, result.stderr
    result = run(environment, "hf-mwp", "train", "--dataset", "math23k")
    assert result.returncode == 1 and "needs the package" in result.stderr and "Traceback" not in result.stderr


def test_metadata_and_files(wheel):
    with zipfile.ZipFile(wheel) as files:
        names = files.namelist()
        (path,) = (name for name in names if name.endswith(".dist-info/METADATA"))
        metadata = Parser().parsestr(files.read(path).decode())
        entry_points = files.read(path.replace("METADATA", "entry_points.txt")).decode()
    assert metadata["Name"] == "hf-mwp" and metadata["Version"] == __version__
    assert metadata["License-Expression"] == "Apache-2.0" and metadata["Requires-Python"] == ">=3.11"
    assert "hf-mwp = hf_mwp.commands.main:main" in entry_points
    assert {"cli", "runtime", "onnx", "docs", "dev", "demo", "ltp", "seq2seq"} <= {*metadata.get_all("Provides-Extra")}
    assert any(line.startswith("torch") for line in metadata.get_all("Requires-Dist"))
    assert "# hf_mwp" in str(metadata)
    # Code and the files that it reads; no data, whose licences differ, and no models.
    assert {name.split("/")[0] for name in names} == {"hf_mwp", path.split("/")[0]}
    package = ROOT / "hf_mwp"
    for path in package.rglob("*"):
        if path.is_file() and path.suffix != ".pyc":
            assert path.relative_to(ROOT).as_posix() in names
