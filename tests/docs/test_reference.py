"""The reference: complete, read from docstrings, and built without anything from elsewhere."""

import importlib
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import hf_mwp


DOCS = Path(__file__).parents[2] / "docs"
TEXT = "".join(page.read_text("utf-8") for page in sorted((DOCS / "pages" / "api").glob("*.md")))
DOCUMENTED = re.findall(r"^::: (\S+)$", TEXT, re.MULTILINE)
SOURCE = '''
from dataclasses import dataclass

class Net:
    """
    A net.

    Args:
        width (`int`, *optional*, defaults to 3): Its width, see [`Net`] and [`other.Thing`].
        depth (`int`), names (`list[str]`, *optional*):
            How deep (`a`, `b`): both.
    """

    def __init__(self, depth, names=None, width=3): ...

@dataclass
class Config:
    """Options of [`Net`]."""

    rate: float = setting(0.1, "Share of 100 %% that " "is kept.", choices=[0.1])
'''


def test_everything_public_is_documented():
    objects = {}
    for path in DOCUMENTED:
        module, _, name = path.rpartition(".")
        objects[path] = getattr(importlib.import_module(module), name)
    known = list(map(id, objects.values()))
    names = {*hf_mwp.__all__} - {"losses", "metrics", "objectives"}
    assert not {name for name in names if id(getattr(hf_mwp, name)) not in known}
    for room in (hf_mwp.compress.losses, hf_mwp.objectives):
        assert not {name for name in room.__all__ if id(getattr(room, name)) not in known}
    assert len(known) == len({*known}) and all(each.__doc__ for each in objects.values())


def test_docstrings_are_read(tmp_path, monkeypatch):
    griffe = pytest.importorskip("griffe")
    (tmp_path / "net.py").write_text(SOURCE, "utf-8")
    extensions = griffe.load_extensions(str(DOCS / "transformers_docstrings.py"))
    (extension,) = (each for each in extensions._extensions if type(each).__name__ == "TransformersDocstrings")
    module = sys.modules[type(extension).__module__]
    monkeypatch.setattr(module, "DOCUMENTED", ["other.Net", "net.Net"])
    net = griffe.load("net", search_paths=[tmp_path], extensions=extensions)
    (_, section) = net["Net"].docstring.parse("google")
    found = [(each.name, str(each.annotation), each.description.strip()) for each in section.value]
    assert found == [
        ("width", "int", "Its width, see [`Net`][net.Net] and `other.Thing`."),
        ("depth", "int", ""),
        ("names", "list[str]", "How deep (`a`, `b`): both."),
    ]
    rate = net["Config.rate"]
    assert (str(rate.value), rate.docstring.value) == ("0.1", "Share of 100 % that is kept.")
    assert [(each.name, str(each.default)) for each in net["Config"].parameters][1:] == [("rate", "0.1")]


def test_the_site_builds_and_loads_nothing_from_elsewhere(tmp_path):
    pytest.importorskip("zensical")
    shutil.copytree(DOCS, tmp_path / "docs", ignore=shutil.ignore_patterns("site", ".cache"))
    (tmp_path / "hf_mwp").symlink_to(DOCS.parent / "hf_mwp")
    command = [sys.executable, "-m", "zensical", "build", "--strict", "--config-file", "docs/mkdocs.yml"]
    result = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert result.returncode == 0, result.stdout + result.stderr
    pages = [*(tmp_path / "docs" / "site").rglob("*.html")]
    assert len(pages) > len(DOCUMENTED) / 10
    for page in pages:
        text = page.read_text("utf-8")
        assert not re.findall(r"""<(?:script|img|iframe)[^>]*\ssrc=["']?(?:https?:)?//""", text)
        assert not re.findall(r"""<link[^>]*rel=["']?stylesheet[^>]*href=["']?(?:https?:)?//""", text)
    trainers = (tmp_path / "docs" / "site" / "api" / "trainers.html").read_text("utf-8")
    assert "softens the probabilities of teacher and student." in trainers
