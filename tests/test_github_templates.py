"""Issue forms as GitHub reads them."""

from pathlib import Path

import pytest
import yaml


FOLDER = Path(__file__).parents[1] / ".github"


@pytest.mark.parametrize("path", sorted((FOLDER / "ISSUE_TEMPLATE").glob("*_*.yml")), ids=lambda path: path.stem)
def test_forms_have_what_github_asks_for(path):
    form = yaml.safe_load(path.read_text("utf-8"))
    assert {"name", "description", "body"} <= set(form)
    ids = [field["id"] for field in form["body"]]
    assert len(ids) == len(set(ids)) and all(field["attributes"]["label"] for field in form["body"])
    assert any(field.get("validations", {}).get("required") for field in form["body"])


def test_the_pull_request_template_names_targets_of_make(repository):
    text = (FOLDER / "pull_request_template.md").read_text("utf-8")
    targets = (repository / "Makefile").read_text("utf-8")
    assert all(f"\n{name}:" in targets for name in ("lint", "docs", "test")) and "`make docs`" in text
