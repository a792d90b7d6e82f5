"""Issue forms as GitHub reads them."""

import re
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


WORKFLOWS = sorted((Path(__file__).parents[1] / ".github" / "workflows").glob("*.yml"))
TARGETS = set(re.findall(r"^([a-z-]+):", (Path(__file__).parents[1] / "Makefile").read_text("utf-8"), re.MULTILINE))


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_workflows_run_targets_of_the_makefile(path):
    workflow = yaml.safe_load(path.read_text("utf-8"))
    assert workflow["permissions"] == {"contents": "read"}
    num_commands = 0
    for job in workflow["jobs"].values():
        for step in job["steps"]:
            if "run" in step:
                program, target, *_ = step["run"].split()
                assert program == "make" and target in TARGETS
                num_commands += 1
            else:
                assert re.fullmatch(r"[\w-]+/[\w-]+@[\w./]+", step["uses"])
    assert num_commands >= 2


def test_workflows_test_the_versions_that_the_package_names():
    workflow = yaml.safe_load((WORKFLOWS[0].parent / "tests.yml").read_text("utf-8"))
    setup = (Path(__file__).parents[1] / "setup.cfg").read_text("utf-8")
    named = re.findall(r"Python :: (3\.\d+)", setup)
    assert workflow["jobs"]["test"]["strategy"]["matrix"]["python"] == named
