import shutil

import pytest
from transformers import pipeline

import hf_mwp  # noqa: F401 (registers the task)
from hf_mwp.models.mwp_solver import SolverFolderError
from tests.tiny import tiny_processor, tiny_solver


def test_without_a_model_the_quickstarts_student_is_taken_or_asked_for(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SolverFolderError, match="examples/quickstart.py.*model="):
        pipeline("math-word-problem")
    processor = tiny_processor(max_length=64)
    folder = tmp_path / "hf_mwp_quickstart" / "student"
    tiny_solver(processor).save_pretrained(folder)
    processor.save_pretrained(folder)
    (result,) = pipeline("math-word-problem", device="cpu")("小明有4个苹果，又买了2个，一共有几个？")
    assert result["numbers"] == ["4", "2"]
    shutil.rmtree(folder)
    with pytest.raises(SolverFolderError):
        pipeline("math-word-problem")
