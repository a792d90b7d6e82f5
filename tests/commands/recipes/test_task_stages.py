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


def test_it_depends_on_what_is_in_the_folder_and_not_on_its_place(glue, tmp_path):
    def digest(folder=glue, task="rte", **options):
        return stage_inputs("train", {"task": task, "data_dir": str(folder), "encoder": "bert", **options}, {})

    before = digest()
    shutil.copytree(glue, tmp_path / "copy")
    assert digest(tmp_path / "copy") == before and digest(task="wnli") != before
    # Files of other tasks do not matter.
    (glue / "MRPC").mkdir()
    (glue / "MRPC" / "train.tsv").write_text("rows")
    assert digest() == before
    (glue / "RTE" / "train.tsv").write_text("other rows")
    assert digest() != before


def test_its_teacher_is_no_solver_and_its_data_no_problems(encoder, glue):
    options = {"task": "rte", "data_dir": str(glue), "teacher": str(encoder), "student_layers": "1"}
    Stage("student", "distill", options).check()
    with pytest.raises(UsageError, match="stage student: key 'data_dir': .*RTE/train.tsv"):
        Stage("student", "distill", options | {"data_dir": "nowhere"}).check()
    options |= {"task": None, "data_dir": None}
    with pytest.raises(UsageError, match="stage student: .*'teacher': .*'bert'.*solver"):
        Stage("student", "distill", options).check()
