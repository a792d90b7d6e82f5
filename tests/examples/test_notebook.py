"""The notebook in `examples`, with an encoder of random weights and two steps of training."""

import json
from pathlib import Path

import pytest

from hf_mwp import load_mwp_dataset
from tests.tiny import tiny_processor, tiny_solver


NOTEBOOK = Path(__file__).parents[2] / "examples" / "notebook.ipynb"
QUICKER = {
    '"num_train_epochs": 5': '"max_steps": 2',
    '"all-MiniLM-L6-v2"': '"tiny_encoder"',
    "hf_mwp.load_mwp_dataset(": "few(",
}


def few(*args, **kwargs):
    """Load a data set and keep 20 problems of each split."""
    return {name: rows.select(range(20)) for name, rows in load_mwp_dataset(*args, **kwargs).items()}


@pytest.fixture
def code(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    processor = tiny_processor(max_length=64, language="en")
    tiny_solver(processor, layers=6).encoder.save_pretrained("tiny_encoder")
    processor.tokenizer.save_pretrained("tiny_encoder")
    cells = json.loads(NOTEBOOK.read_text("utf-8"))["cells"]
    source = "\n".join("".join(cell["source"]) for cell in cells if cell["cell_type"] == "code")
    for slow, quick in QUICKER.items():
        assert slow in source
        source = source.replace(slow, quick)
    return source


@pytest.mark.slow
def test_notebook_builds_trains_distils_solves_and_labels(code, capsys):
    names: dict = {"__name__": "__main__", "few": few}
    exec(compile(code, str(NOTEBOOK), "exec"), names)
    assert len(code.splitlines()) <= 25
    assert names["student"].config.num_hidden_layers == 3
    assert len(names["solved"]) == names["report"]["num_problems"] == 20
    assert sum(names["labelled"].fates.values()) == len(names["others"])
    assert Path("runs/notebook/student/model.safetensors").is_file()
