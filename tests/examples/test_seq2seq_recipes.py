"""The recipes of sequence-to-sequence models, run on tiny files."""

import json

import pytest

from hf_mwp.commands.main import main
from tests.examples.scripts import EXAMPLES


TINY = ["--budget", "quick", "--use_cpu", "true", "--max_train_samples", "24", "--max_eval_samples", "4"]


@pytest.fixture
def pairs(tmp_path):
    """A folder of TSV files without a header, as those of Multi30k may be."""
    lines = []
    for size, taille in (("small", "petit"), ("big", "grand")):
        for number in range(20):
            lines.append(f"a {size} dog has {number} bones .\tun {taille} chien a {number} os .")
    folder = tmp_path / "multi30k_en-fr"
    folder.mkdir()
    for name, rows in (("train", lines[:30]), ("val", lines[30:35]), ("test_2016_flickr", lines[35:])):
        (folder / f"{name}.tsv").write_text("\n".join(rows) + "\n", encoding="utf-8")
    return folder


def run(recipe, folder, *arguments):
    """Run a recipe, and return the reports of its evaluations by stage and split."""
    path = EXAMPLES / f"distill_{recipe}.yaml"
    assert main(["run", str(path), *arguments, "--output_dir", str(folder)]) == 0
    reports = {}
    for path in folder.glob("evaluate*/metrics.json"):
        for split, metrics in json.loads(path.read_text()).items():
            if isinstance(metrics, dict) and "reports" in metrics:
                reports[path.parent.name.rpartition("-")[0], split] = metrics["reports"]["all problems"]
    return reports


@pytest.mark.slow
def test_translator_and_its_student_are_evaluated(tmp_path, pairs):
    targets = ["evaluate", "evaluate_of_labels"]
    reports = run("translation", tmp_path / "runs", *TINY, "--dataset", str(pairs), "--targets", *targets)
    assert reports.keys() == {(target, "test") for target in targets}
    for report in reports.values():
        assert report.keys() > {"bleu", "chrf", "nll"}
        assert report["num_examples"] == 4


@pytest.mark.slow
def test_dataset_without_a_test_split_is_evaluated_on_validation(tmp_path, pairs):
    data = ["--dataset", str(pairs / "train.tsv"), "--split", "validation"]
    reports = run("translation", tmp_path / "runs", *TINY, *data, "--targets", "evaluate_teacher")
    assert reports["evaluate_teacher", "validation"]["num_examples"] == 3


@pytest.mark.slow
def test_math_word_problems_are_sequences(tmp_path):
    targets = ["evaluate", "evaluate_teacher", "evaluate_of_labels"]
    # The teacher needs the recipe's own number of problems to generate equations that can be used as targets.
    argv = ["--budget", "quick", "--use_cpu", "true", "--max_eval_samples", "4", "--targets", *targets]
    reports = run("math_seq2seq", tmp_path / "runs", *argv)
    assert reports.keys() == {(target, "test") for target in targets}
    for report in reports.values():
        assert report["num_problems"] == 4
