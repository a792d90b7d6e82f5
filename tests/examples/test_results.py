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


def test_page_is_made_of_the_records(make_page, tmp_path):
    assert (RESULTS / "ACCURACY.md").read_text("utf-8") == make_page.page()
    make_page.draw(tmp_path / "accuracy.png")
    assert (tmp_path / "accuracy.png").stat().st_size > 10_000


# 829 of the 1,000 are right with re-ranking, 23 of the 30 that were trained on without.
@pytest.mark.parametrize(
    ("record", "row"),
    [
        ("reversed_learned", "| Math23k, test | all | 1,000 | 75.1 | 76.6 | 82.9 |"),
        ("reversed_learned", "| Math23k, test | exact text in training data | 30 | 76.7 | 76.7 | 80.0 |"),
        ("reversed_learned", "| Math23k, test, reversed | all | 1,947 | 45.9 | 46.6 | 60.4 |"),
        ("gemma", "| Math23k, test | all | 1,000 | 77.7 | 78.3 | 82.5 |"),
        ("born_again", "| Math23k, test, reversed | all | 1,947 | 36.4 | 36.5 | 47.4 |"),
    ],
)
def test_cell_is_the_share_in_its_record(make_page, record, row):
    assert row in make_page.rows(f"compact_math23k/evaluations/{record}")


def read_report(record):
    return json.loads((RESULTS / f"{record}.json").read_text("utf-8"))["test"]["reports"]["all problems"]


def share(record):
    return f"{100 * read_report(record)['answer_accuracy']:.1f}"


STUDENTS = {  # by the name in README: folder of the records, and name in the table of the family
    "math23k-gemma": ("people_gemma", "base, from Gemma"),
    "6 (?:layers|层)": ("large_math23k", "large, 6 x 312"),
    "math23k": ("stories_math23k", "base, 3 x 312"),
    "math23k-small": ("small_math23k", "small, 3 x 192"),
}


def cells_of(text, name):
    """The cells of a student in README's table: language, correct answers, megabytes, milliseconds, commercial use."""
    (line,) = re.findall(rf"\| \[`?{name}`?].*", text)
    return [cell.strip() for cell in line.split("|")[2:-1]]


@pytest.mark.parametrize("page", ["README.md", "README.zh.md"])
def test_figures_of_the_readme_are_those_of_the_records(page):
    text = (ROOT / page).read_text("utf-8")
    models = json.loads((RESULTS / "small_math23k" / "family.json").read_text("utf-8"))["models"]
    costs = {model["name"]: model for model in models}
    with_beams = []
    for name, (folder, title) in STUDENTS.items():
        _, answers, megabytes, milliseconds, _ = cells_of(text, name)
        model = costs[title]
        assert [megabytes, milliseconds] == [f"{model['megabytes']:.1f}", f"{model['milliseconds']:.1f}"]
        record = f"{folder}/evaluations/published"
        shares = [share(f"{record}{data}-reranked") for data in ("", "-ape_clean_listed", "-unbiased")]
        assert re.findall(r"\d+\.\d", answers) == shares
        with_beams.append(share(f"{record}-beam5"))
    assert re.search(rf"{min(with_beams)} (?:to|至) {max(with_beams)}", text)


@pytest.mark.parametrize("page", ["README.md", "README.zh.md"])
def test_figures_of_the_english_student_are_those_of_the_records(page):
    _, answers, megabytes, milliseconds, _ = cells_of((ROOT / page).read_text("utf-8"), "english")
    (model,) = json.loads((RESULTS / "compact_english" / "family.json").read_text("utf-8"))["models"]
    assert [megabytes, milliseconds] == [f"{model['megabytes']:.1f}", f"{model['milliseconds']:.1f}"]
    asdiv, mawps, svamp = re.findall(r"\d+\.\d", answers)
    record = "stories_english/evaluations/published"
    assert mawps == share(f"{record}-mawps-reranked")
    assert svamp == share(f"{record}-svamp-reranked")
    right = 0
    num_problems = 0
    for fold in ("", "-fold1", "-fold2", "-fold3", "-fold4"):
        report = read_report(f"{record}-asdiv_a{fold}-reranked")
        right += round(report["answer_accuracy"] * report["num_problems"])
        num_problems += report["num_problems"]
    assert num_problems == 1218
    assert asdiv == f"{100 * right / num_problems:.1f}"
