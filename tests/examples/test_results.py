"""The figures in README.md are those of the records in examples/results, and the page made of these is up to date."""

import json
import re
from pathlib import Path

import pytest

from tests.examples.scripts import load_script


ROOT = Path(__file__).parents[2]
RESULTS = ROOT / "examples" / "results"


@pytest.fixture(scope="module")
def make_page():
    return load_script("results/make_page.py")


def test_the_page_is_made_of_the_records(make_page, tmp_path):
    assert (RESULTS / "ACCURACY.md").read_text("utf-8") == make_page.page()
    make_page.draw(tmp_path / "accuracy.png")
    assert (tmp_path / "accuracy.png").stat().st_size > 10_000


def test_a_cell_is_the_share_in_its_record(make_page):
    def rows(name):
        return make_page.rows(f"compact_math23k/evaluations/{name}")

    learned = rows("reversed_learned")
    # 829 of the 1,000 are right with re-ranking, 23 of the 30 that were trained on without.
    assert "| Math23k, test | all | 1,000 | 75.1 | 76.6 | 82.9 |" in learned
    assert "| Math23k, test | exact text in training data | 30 | 76.7 | 76.7 | 80.0 |" in learned
    assert "| Math23k, test | all | 1,000 | 77.7 | 78.3 | 82.5 |" in rows("gemma")
    assert "| Math23k, test | all | 1,000 | 77.7 | 78.1 | 83.3 |" in rows("gemma_reversed")
    assert "| Math23k, test | all | 1,000 | 77.0 | 77.7 | 83.3 |" in rows("gemma_seeds")
    assert "| Math23k, test, reversed | all | 1,947 | 45.9 | 46.6 | 60.4 |" in learned
    assert "| Math23k, test, reversed | all | 1,947 | 36.4 | 36.5 | 47.4 |" in rows("born_again")


def share(record):
    report = json.loads((RESULTS / record).read_text("utf-8"))["test"]["reports"]["all problems"]
    return f"{100 * report['answer_accuracy']:.1f}"


STUDENTS = {  # by the name in README: folder of the records, and name in the table of the family
    "math23k-gemma": ("question_reading", "base, from Gemma"),
    "6 (?:layers|层)": ("large_math23k", "large, 6 x 312"),
    "math23k": ("question_reading_mit", "base, 3 x 312"),
    "math23k-small": ("small_math23k", "small, 3 x 192"),
}


@pytest.mark.parametrize("page", ["README.md", "README.zh.md"])
def test_figures_of_the_readme_are_those_of_the_records(page):
    text = (ROOT / page).read_text("utf-8")
    family = json.loads((RESULTS / "small_math23k" / "family.json").read_text("utf-8"))["models"]
    with_beams = []
    for name, (folder, title) in STUDENTS.items():
        (line,) = re.findall(rf"\| \[`?{name}`?].*", text)
        (measured,) = (each for each in family if each["name"] == title)
        figures = [measured["parameters"] / 1e6, measured["megabytes"], measured["milliseconds"]]
        sizes = [f"{each:.1f}" for each in figures]
        place = f"{folder}/evaluations/published"
        shares = [share(f"{place}{data}-reranked.json") for data in ("", "-ape_clean_listed", "-unbiased")]
        assert [cell.strip() for cell in line.split("|")[2:-1]] == [f"{sizes[0]} M", *sizes[1:], *shares]
        with_beams.append(share(f"{place}-beam5.json"))
    *first, last = with_beams
    assert re.search(rf"{'(?:, |、)'.join(first)} (?:and|和) {last} %", text)


def test_figures_of_the_english_student_are_those_of_the_records():
    text = (ROOT / "README.md").read_text("utf-8")
    pattern = r"solves ([\d.]+) % of ASDiv-A, ([\d.]+) % of a fold of MAWPS and\s+([\d.]+) % of SVAMP"
    shown = re.search(pattern, text).groups()
    place = "compact_english/evaluations/without_asdiv"
    assert list(shown[1:]) == [share(f"{place}-{data}-reranked.json") for data in ("mawps", "svamp")]
    folds = ["", *(f"-fold{fold}" for fold in range(1, 5))]
    records = [json.loads((RESULTS / f"{place}-asdiv_a{fold}-reranked.json").read_text("utf-8")) for fold in folds]
    reports = [each["test"]["reports"]["all problems"] for each in records]
    right = sum(round(each["answer_accuracy"] * each["num_problems"]) for each in reports)
    assert shown[0] == f"{100 * right / 1218:.1f}" and sum(each["num_problems"] for each in reports) == 1218
