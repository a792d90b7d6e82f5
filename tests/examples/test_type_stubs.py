"""Stubs of the public packages, and a type checker's view of the public names."""

import importlib
import subprocess
import sys
from pathlib import Path

import pytest

from tests.examples.scripts import load_script


ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def type_stubs():
    return load_script("type_stubs.py")


def test_stubs_are_up_to_date(type_stubs):
    assert type_stubs.main(["--check"]) == 0


def test_each_public_name_is_imported(type_stubs):
    for package in type_stubs.PACKAGES:
        module = importlib.import_module(package)
        names = set()
        for line in type_stubs.stub(package).splitlines():
            if line.startswith("from "):
                names.add(line.rpartition(" as ")[2])
        assert names == {*module.__all__}


def test_old_stub_is_an_error(type_stubs, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(type_stubs, "ROOT", tmp_path)
    monkeypatch.setattr(type_stubs, "PACKAGES", ("hf_mwp.runtime",))
    assert type_stubs.main(["--check"]) == 1
    assert "hf_mwp/runtime/__init__.pyi" in capsys.readouterr().err
    (tmp_path / "hf_mwp" / "runtime").mkdir(parents=True)
    assert type_stubs.main([]) == 0
    assert type_stubs.main(["--check"]) == 0


@pytest.mark.slow
def test_type_checker_accepts_uses_of_public_names(tmp_path):
    pytest.importorskip("mypy")
    command = [sys.executable, "-m", "mypy", "--cache-dir", str(tmp_path)]
    result = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert result.returncode == 0, result.stdout
