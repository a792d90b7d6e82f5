"""Stages of another task than math word problems."""

import shutil

import pytest

from hf_mwp.commands.recipes.stage import Stage, stage_inputs
from hf_mwp.utils.usage_error import UsageError


@pytest.fixture
def glue(tmp_path):
    folder = tmp_path / "glue" / "RTE"
    folder.mkdir(parents=True)
    (folder / "train.tsv").write_text("rows")
    return folder.parent


def test_stage_depends_on_the_files_of_its_task_alone(glue, tmp_path):
    def digest(folder=glue, task="rte"):
        return stage_inputs("train", {"task": task, "data_dir": str(folder), "encoder": "bert"}, {})

    before = digest()
    shutil.copytree(glue, tmp_path / "copy")
    assert digest(tmp_path / "copy") == before
    assert digest(task="wnli") != before
    (glue / "MRPC").mkdir()
    (glue / "MRPC" / "train.tsv").write_text("rows")
    assert digest() == before
    (glue / "RTE" / "train.tsv").write_text("other rows")
    assert digest() != before


def test_task_decides_which_teachers_and_data_are_checked(encoder, glue):
    options = {"task": "rte", "data_dir": str(glue), "teacher": str(encoder), "student_layers": "1"}
    Stage("student", "distill", options).check()
    with pytest.raises(UsageError, match="stage student: key 'data_dir': .*RTE/train.tsv"):
        Stage("student", "distill", options | {"data_dir": "nowhere"}).check()
    with pytest.raises(UsageError, match="stage student: .*'teacher': .*'bert'.*solver"):
        Stage("student", "distill", options | {"task": None, "data_dir": None}).check()
