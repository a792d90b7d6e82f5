"""Issue forms as GitHub reads them."""

from pathlib import Path

import pytest
import yaml


FORMS = sorted((Path(__file__).parents[1] / ".github" / "ISSUE_TEMPLATE").glob("*_*.yml"))


@pytest.mark.parametrize("path", FORMS, ids=lambda path: path.stem)
def test_forms_have_what_github_requires(path):
    form = yaml.safe_load(path.read_text("utf-8"))
    assert {"name", "description", "body"} <= set(form)
    ids = [field["id"] for field in form["body"]]
    assert len(ids) == len(set(ids))
    for field in form["body"]:
        assert field["attributes"]["label"]
    assert any(field.get("validations", {}).get("required") for field in form["body"])
