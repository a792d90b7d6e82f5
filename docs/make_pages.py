"""
Writes the pages that are made from other files of the repository:

- `pages/guides/choose.md` from `templates/choose.md`, whose figures come from the records in `examples/results`;
- `site_pages`, from which the site is built: the folder `pages`, and the pages on results, tables, benchmarks and data
  in `examples`, with the pictures of the results. In the repository, links lead to files. On the site, they lead to
  pages; links to other files lead to the repository, if the environment variable `HF_MWP_REPOSITORY` has its address,
  and are plain text otherwise.

    python docs/make_pages.py            # as `make docs` does
    python docs/make_pages.py --check    # fail if choose.md differs from its records
"""

import argparse
import json
import os
import re
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from statistics import mean

from jinja2 import Environment, StrictUndefined


DOCS = Path(__file__).parent
ROOT = DOCS.parent
RESULTS = ROOT / "examples" / "results"
PAGES = DOCS / "pages"
SITE_PAGES = DOCS / "site_pages"
TEMPLATE = DOCS / "templates" / "choose.md"
CHOOSE = Path("guides") / "choose.md"


def results_files(*patterns: str) -> dict[str, Path]:
    """Return files of `examples/results` by their path on the site, where they are in the folder `results`."""
    files = {}
    for pattern in patterns:
        for path in sorted(RESULTS.glob(pattern)):
            files[f"results/{path.relative_to(RESULTS).as_posix()}"] = path
    return files


# Pages of other folders that are also pages of the site.
COPIED = {
    "results/results.md": RESULTS / "README.md",
    "results/commands.md": RESULTS / "COMMANDS.md",
    "results/experiments.md": RESULTS / "EXPERIMENTS.md",
    "results/accuracy.md": RESULTS / "ACCURACY.md",
    "results/reproduce.md": ROOT / "examples" / "reproduce" / "README.md",
    "results/benchmarks.md": ROOT / "examples" / "benchmarks" / "RESULTS.md",
    "results/datasets.md": ROOT / "examples" / "data" / "README.md",
    **results_files("tables/*.md", "*/family.md"),
}
PICTURES = results_files("accuracy.png", "tables/*.png", "*/family.png")
LINK = re.compile(r"(!?)\[((?:[^\[\]]|\[[^\]]*\])*)\]\((?!https?:|#)([^)#\s]+)(#[^)]*)?\)")


def answers(record: str) -> str:
    """Return the share of correct answers, in %, in an evaluation of `examples/results`."""
    report = read(f"{record}.json")["test"]["reports"]["all problems"]
    num_correct = round(report["answer_accuracy"] * report["num_problems"])
    return f"{100 * num_correct / report['num_problems']:.1f}"


def cell(table: str, row: str, column: str) -> str:
    """Return the mean over seeds of a figure in `examples/results/tables`."""
    return f"{mean(figures(table, row, column)):.1f}"


def folds(table: str, row: str) -> str:
    """Return the accuracy on all five folds of ASDiv-A together, in %, in a table."""
    num_correct = 0
    num_problems = 0
    for number in range(5):
        share = mean(figures(table, row, f"fold{number}"))
        # Folds of different sizes: the number of problems is that of the record.
        count = counts(table, row)[f"fold{number}"]
        num_correct += round(share / 100 * count)
        num_problems += count
    return f"{100 * num_correct / num_problems:.1f}"


def figures(table: str, row: str, column: str) -> list[float]:
    """Return a figure of each run of a row."""
    return [run["figures"][column] for run in runs(table, row) if column in run["figures"]]


def counts(table: str, row: str) -> dict[str, int]:
    """Return the numbers of problems behind the figures of a row."""
    return runs(table, row)[0]["counts"]


def runs(table: str, row: str) -> list[dict]:
    """Return the runs of a row of a table."""
    (arm,) = (arm for arm in read(f"tables/{table}.json")["arms"] if arm["name"] == row)
    return arm["runs"]


def family(name: str, figure: str) -> str:
    """Return a figure of a published student, measured side by side with the others."""
    (model,) = (model for model in read("small_math23k/family.json")["models"] if model["name"] == name)
    return f"{model[figure]:.1f}"


def deployed(variant: str, search: str) -> str:
    """Return the number of correct answers of a deployed solver."""
    return str(read("deployed_answers.json")["right"][variant][search])


def benchmark(section: str, row: str, column: int) -> str:
    """Return a cell of the first table with a row in a section of `RESULTS.md`."""
    text = COPIED["results/benchmarks.md"].read_text("utf-8")
    text = text.partition(f"\n## {section}\n")[2].partition("\n## ")[0]
    (cells, *_) = re.findall(rf"^\| {re.escape(row)} +\|(.*)\|$", text, re.MULTILINE)
    return cells.split("|")[column].strip()


def benchmark_answers(variant: str) -> tuple[int, ...]:
    """Return the correct answers of a deployed solver in the last table of `RESULTS.md` with its name."""
    text = COPIED["results/benchmarks.md"].read_text("utf-8")
    cells = re.findall(rf"^\| {re.escape(variant)} +\|(.*)\|$", text, re.MULTILINE)[-1].split("|")
    return tuple(int(cell_text) for cell_text in cells[-2:])


def read(name: str) -> dict:
    """Read a record of `examples/results`."""
    return json.loads((RESULTS / name).read_text("utf-8"))


FIGURES: tuple[Callable, ...] = (answers, cell, folds, family, deployed, benchmark)


def choose_page() -> str:
    """Return the text of `choose.md`."""
    environment = Environment(undefined=StrictUndefined, keep_trailing_newline=True, autoescape=False)
    environment.globals |= {function.__name__: function for function in FIGURES}
    return environment.from_string(TEMPLATE.read_text("utf-8")).render()


def site_page(page: str, source: Path, repository: str | None = None) -> str:
    """
    Return the text of a page with links that work on the site.

    Args:
        page (`str`): Path of the page on the site.
        source (`Path`): Its file in the repository.
        repository (`str`, *optional*): Address of the repository.
    """
    targets = {path.resolve(): name for name, path in (COPIED | PICTURES).items()}
    folder = Path(page).parent

    def rewrite(match: re.Match) -> str:
        mark, text, target, anchor = match.groups(default="")
        path = (source.parent / target).resolve()
        name = targets.get(path)
        if name is None and path.is_relative_to(PAGES):
            name = path.relative_to(PAGES).as_posix()
        if name is not None:
            return f"{mark}[{text}]({Path(os.path.relpath(name, folder)).as_posix()}{anchor})"
        if not path.exists():
            raise FileNotFoundError(f"{source.relative_to(ROOT)} links to {target}, which does not exist.")
        if repository is not None:
            kind = "raw" if mark else "blob"
            return f"{mark}[{text}]({repository}/{kind}/HEAD/{path.relative_to(ROOT).as_posix()}{anchor})"
        if mark:
            return ""
        return text

    return LINK.sub(rewrite, source.read_text("utf-8"))


def write_site_pages(target: Path, repository: str | None = None) -> None:
    """Write the folder from which the site is built."""
    shutil.rmtree(target, ignore_errors=True)
    shutil.copytree(PAGES, target)
    sources = dict(COPIED)
    for path in PAGES.rglob("*.md"):
        sources[path.relative_to(PAGES).as_posix()] = path
    for page, source in sources.items():
        path = target / page
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(site_page(page, source, repository), encoding="utf-8")
    for picture, source in PICTURES.items():
        path = target / picture
        path.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(source, path)


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Write the pages that are made from other files.")
    parser.add_argument("--check", action="store_true", help="fail if choose.md differs from its records")
    args = parser.parse_args(arguments)
    if not args.check:
        (PAGES / CHOOSE).write_text(choose_page(), encoding="utf-8")
        write_site_pages(SITE_PAGES, os.environ.get("HF_MWP_REPOSITORY"))
        return 0
    if (PAGES / CHOOSE).read_text("utf-8") != choose_page():
        print(f"{CHOOSE} differs from its records. Run `python docs/make_pages.py`.", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
