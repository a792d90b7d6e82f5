"""The recipes of sequence-to-sequence models, run on tiny files."""

import json

import pytest

from hf_mwp.commands.main import main
from tests.examples.scripts import EXAMPLES


TRANSLATION, MATH = (EXAMPLES / f"distill_{name}.yaml" for name in ("translation", "math_seq2seq"))
TINY = ["--budget", "quick", "--use_cpu", "true", "--max_train_samples", "24", "--max_eval_samples", "4"]


@pytest.fixture
def pairs(tmp_path):
    """A folder of TSV files without a header, as those of Multi30k may be laid out."""
    folder = tmp_path / "multi30k_en-fr"
    folder.mkdir()
    lines = [f"a {size} dog has {n} bones .\tun {taille} chien a {n} os ." for size, taille in
             (("small", "petit"), ("big", "grand")) for n in range(20)]  # fmt: skip
    for name, part in (("train", lines[:30]), ("val", lines[30:35]), ("test_2016_flickr", lines[35:])):
        (folder / f"{name}.tsv").write_text("\n".join(part) + "\n", encoding="utf-8")
    return folder


def reports(folder):
    found = {}
    for path in folder.glob("evaluate*/metrics.json"):
        found[path.parent.name.rpartition("-")[0]] = json.loads(path.read_text())["test"]["reports"]["all problems"]
    return found


def test_a_translator_and_its_student(tmp_path, pairs):
    argv = ["run", str(TRANSLATION), *TINY, "--dataset", str(pairs), "--output_dir", str(tmp_path / "runs")]
    assert main([*argv, "--targets", "evaluate", "evaluate_of_labels"]) == 0
    found = reports(tmp_path / "runs")
    assert {"evaluate", "evaluate_of_labels"} == {*found}
    assert all({"bleu", "chrf", "nll"} < report.keys() and report["num_examples"] == 4 for report in found.values())


def test_a_dataset_without_a_test_split(tmp_path, pairs):
    given = ["--dataset", str(pairs / "train.tsv"), "--split", "validation", "--targets", "evaluate_teacher"]
    assert main(["run", str(TRANSLATION), *TINY, *given, "--output_dir", str(tmp_path / "runs")]) == 0
    (path,) = (tmp_path / "runs").glob("evaluate_teacher*/metrics.json")
    assert json.loads(path.read_text())["validation"]["reports"]["all problems"]["num_examples"] == 3


@pytest.mark.slow
def test_math_word_problems_as_sequences(tmp_path):
    targets = {"evaluate", "evaluate_teacher", "evaluate_of_labels"}
    # The teacher needs the recipe's own number of problems to generate equations that can be used as targets.
    argv = ["run", str(MATH), "--budget", "quick", "--use_cpu", "true", "--max_eval_samples", "4"]
    assert main([*argv, "--output_dir", str(tmp_path / "runs"), "--targets", *sorted(targets)]) == 0
    found = reports(tmp_path / "runs")
    assert targets == {*found}
    assert all(report["num_problems"] == 4 for report in found.values())
