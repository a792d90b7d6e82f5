"""The reference: complete, read from docstrings, and built without anything from elsewhere."""

import importlib
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import hf_mwp
from tests.docs.test_generated_pages import load_make_pages


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

    def copies(self):
        """Make copies.

        Yields:
            [`Net`] or `None`: A copy, or `None` if
            there is none: never.
        """

    def __init__(self, depth, names=None, width=3): ...

@dataclass
class Config:
    """Options of [`Net`]."""

    rate: float = setting(0.1, "Share of 100 %% that " "is kept.", choices=[0.1])
'''


def test_everything_public_is_documented():
    documented = []
    for path in DOCUMENTED:
        module, _, name = path.rpartition(".")
        documented.append(getattr(importlib.import_module(module), name))
    ids = {id(item) for item in documented}
    assert len(ids) == len(documented)
    for item in documented:
        assert item.__doc__
    public = {name: getattr(hf_mwp, name) for name in hf_mwp.__all__}
    for module in (public.pop("losses"), public.pop("objectives")):
        public |= {name: getattr(module, name) for name in module.__all__}
    for name in ("metrics", "pruning"):
        del public[name]
    assert not [name for name, item in public.items() if id(item) not in ids]


def test_docstrings_are_parsed(tmp_path, monkeypatch):
    griffe = pytest.importorskip("griffe")
    (tmp_path / "net.py").write_text(SOURCE, "utf-8")
    extensions = griffe.load_extensions(str(DOCS / "transformers_docstrings.py"))
    (extension,) = (item for item in extensions._extensions if type(item).__name__ == "TransformersDocstrings")
    module = sys.modules[type(extension).__module__]
    monkeypatch.setattr(module, "DOCUMENTED", ["other.Net", "net.Net"])
    net = griffe.load("net", search_paths=[tmp_path], extensions=extensions)
    (_, section) = net["Net"].docstring.parse("google")
    parameters = {item.name: (str(item.annotation), item.description.strip()) for item in section.value}
    assert parameters == {
        "width": ("int", "Its width, see [`Net`][net.Net] and `other.Thing`."),
        "depth": ("int", ""),
        "names": ("list[str]", "How deep (`a`, `b`): both."),
    }
    options = {"returns_multiple_items": False, "returns_named_value": False}
    (_, section) = net["Net.copies"].docstring.parse("google", **options)
    [copy] = section.value
    assert str(copy.annotation) == "Net or None"
    assert copy.description.split() == "A copy, or `None` if there is none: never.".split()
    rate = net["Config.rate"]
    assert str(rate.value) == "0.1" and rate.docstring.value == "Share of 100 % that is kept."
    (_, parameter) = net["Config"].parameters
    assert parameter.name == "rate" and str(parameter.default) == "0.1"


@pytest.mark.slow
def test_site_builds_and_loads_nothing_from_elsewhere(tmp_path):
    pytest.importorskip("zensical")
    shutil.copytree(DOCS, tmp_path / "docs", ignore=shutil.ignore_patterns("site", "site_pages", ".cache"))
    (tmp_path / "hf_mwp").symlink_to(DOCS.parent / "hf_mwp")
    load_make_pages().write_site_pages(tmp_path / "docs" / "site_pages")
    command = [sys.executable, "-m", "zensical", "build", "--strict", "--config-file", "docs/mkdocs.yml"]
    result = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert result.returncode == 0, result.stdout + result.stderr
    site = tmp_path / "docs" / "site"
    pages = list(site.rglob("*.html"))
    assert len(pages) > len(DOCUMENTED) / 10
    for page in pages:
        text = page.read_text("utf-8")
        assert not re.findall(r"""<(?:script|img|iframe)[^>]*\ssrc=["']?(?:https?:)?//""", text)
        assert not re.findall(r"""<link[^>]*rel=["']?stylesheet[^>]*href=["']?(?:https?:)?//""", text)
    trainers = (site / "api" / "trainers_distillation.html").read_text("utf-8")
    assert "softens the probabilities of teacher and student." in trainers
