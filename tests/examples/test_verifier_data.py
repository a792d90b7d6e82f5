"""The example script that makes problems for training the verifier of an English student."""

import sys

from hf_mwp.solver.data import load_mwp_dataset
from tests.examples.scripts import load_script
from tests.examples.test_reranker_data import data_dir  # noqa: F401


def test_each_problem_once_with_variants_and_no_test_problems(tmp_path, data_dir, monkeypatch):  # noqa: F811
    file = tmp_path / "problems.jsonl"
    monkeypatch.setattr(sys, "argv", ["verifier_data.py", str(file), f"--data_dir={data_dir}"])
    script = load_script("verifier_data.py")
    monkeypatch.setattr(script, "NUM_COMPARISONS", 5)
    monkeypatch.setattr(script, "NUM_REVERSED", 7)
    script.main()
    rows = load_mwp_dataset(file, validation_fraction=0)["train"]
    ids = [row["id"] for row in rows]
    assert any("-D" in name for name in ids) and any("-P" in name for name in ids)
    assert sum("-R" in name for name in ids) <= 7
    texts = set(rows["text"])
    for name in ("gsm8k", "gsm8k_steps", "mawps", "asdiv_a"):
        assert not texts & set(load_mwp_dataset(name, data_dir)["test"]["text"]), name
