"""The example script that makes problems for fitting the re-ranker of an English student."""

import gzip
import shutil
import sys
from itertools import islice
from pathlib import Path

import pytest

from hf_mwp.solver.data import load_mwp_dataset, problem_from_row
from tests.examples.scripts import load_script


ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def data_dir(tmp_path_factory):
    """The first problems of GSM8K, and small files of ASDiv-A and MAWPS."""
    folder = tmp_path_factory.mktemp("data")
    shutil.copytree(ROOT / "tests" / "fixtures", folder, dirs_exist_ok=True)
    for split in ("train", "test"):
        with gzip.open(ROOT / "examples" / "data" / "gsm8k" / f"{split}.jsonl.gz", "rt", encoding="utf-8") as lines:
            (folder / "gsm8k" / f"{split}.jsonl").write_text("".join(islice(lines, 60)), encoding="utf-8")
    return folder


@pytest.mark.slow
def test_held_out_problems_are_included_and_test_problems_are_not(tmp_path, data_dir, monkeypatch):
    file = tmp_path / "fit.jsonl"
    monkeypatch.setattr(sys, "argv", ["reranker_data.py", str(file), f"--data_dir={data_dir}", "--asdiv"])
    load_script("reranker_data.py").main()
    rows = load_mwp_dataset(file, validation_fraction=0)["train"]
    texts = set(rows["text"])
    steps = load_mwp_dataset("gsm8k_steps", data_dir)
    for row in steps["validation"]:
        assert row["text"] in texts or not row["equation"]
    for name in ("gsm8k", "gsm8k_steps", "mawps", "asdiv_a"):
        assert not texts & set(load_mwp_dataset(name, data_dir)["test"]["text"]), name
    assert any("-D" in row["id"] for row in rows)
    for row in rows:
        assert problem_from_row(row).agrees()
