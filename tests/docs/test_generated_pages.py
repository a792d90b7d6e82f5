"""Pages of the site that are made from other files, and how far from the first page the others are."""

import hashlib
import importlib.util
import json
import re
from pathlib import Path

import pytest


ROOT = Path(__file__).parents[2]
PAGES = ROOT / "docs" / "pages"
RESULTS = ROOT / "examples" / "results"


def load_make_pages():
    spec = importlib.util.spec_from_file_location("make_pages", ROOT / "docs" / "make_pages.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def make_pages():
    return load_make_pages()


def test_figures_of_the_page_are_those_of_the_records(make_pages):
    assert (PAGES / "guides" / "choose.md").read_text("utf-8") == make_pages.choose_page()
    assert make_pages.main(["--check"]) == 0


# 831 of 1,000; three seeds of 52.9, 48.9 and 50.3; folds of 238, 238, 238, 238 and 266 problems.
def test_figures_are_read_from_records(make_pages):
    assert make_pages.answers("stories_math23k/evaluations/published-reranked") == "83.9"
    assert make_pages.cell("compact-table8-math23k-cpu", "complete", "math23k") == "50.7"
    assert make_pages.folds("pruning-table1-cpu", "gts-0") == "70.0"
    assert make_pages.family("small, 3 x 192", "megabytes") == "7.0"


def test_missing_record_is_an_error(make_pages):
    with pytest.raises(FileNotFoundError, match="nowhere"):
        make_pages.answers("nowhere")
    with pytest.raises(ValueError):
        make_pages.cell("lora-cpu", "no such row", "answer")
    with pytest.raises(ValueError):
        make_pages.benchmark("Deployed solvers", "no such row", 0)


def test_deployed_answers_are_those_of_the_published_weights(make_pages, published_weights):
    record = json.loads((RESULTS / "deployed_answers.json").read_text("utf-8"))
    weights = (ROOT / "model_cards" / record["model"] / "model.safetensors").read_bytes()
    assert record["weights"] == hashlib.sha256(weights).hexdigest(), "run examples/benchmarks/deploy.py --answers"
    for name, right in record["right"].items():
        assert make_pages.benchmark_answers(name) == (right["greedy"], right["default"])


def test_links_lead_to_the_site_or_the_repository(make_pages, monkeypatch):
    text = (
        "[m](../../docs/pages/api/metrics.md#x) [r](../reproduce/README.md) [t](tables/lora-cpu.md) "
        "![p](accuracy.png) [j](tables/lora-cpu.json) ![i](compact_math23k/teacher/learning_curve.png) [w](https://a.b)"
    )
    monkeypatch.setattr(Path, "read_text", lambda self, *_: text)
    page = make_pages.site_page("results/results.md", RESULTS / "README.md")
    site_links = "[m](../api/metrics.md#x) [r](reproduce.md) [t](tables/lora-cpu.md) ![p](accuracy.png)"
    assert page == f"{site_links} j  [w](https://a.b)"
    page = make_pages.site_page("results/results.md", RESULTS / "README.md", "https://host/name")
    assert "[j](https://host/name/blob/HEAD/examples/results/tables/lora-cpu.json)" in page
    assert "![i](https://host/name/raw/HEAD/examples/results/compact_math23k/teacher/learning_curve.png)" in page


def test_links_of_guides_to_files_become_links_to_pages(make_pages, monkeypatch):
    text = "[r](../../../examples/results/README.md#a) [s](solve.md) [g](../glossary.md#b)"
    monkeypatch.setattr(Path, "read_text", lambda self, *_: text)
    page = make_pages.site_page("guides/train.md", PAGES / "guides" / "train.md")
    assert page == "[r](../results/results.md#a) [s](solve.md) [g](../glossary.md#b)"


def test_link_to_a_missing_file_is_an_error(make_pages, monkeypatch):
    monkeypatch.setattr(Path, "read_text", lambda self, *_: "[n](nowhere.md)")
    with pytest.raises(FileNotFoundError, match="links to nowhere.md"):
        make_pages.site_page("results/results.md", RESULTS / "README.md")


def test_site_has_all_pages(make_pages, tmp_path):
    make_pages.write_site_pages(tmp_path / "pages")
    for page in (*make_pages.COPIED, *make_pages.PICTURES, "index.md", "guides/choose.md", "styles/site.css"):
        assert (tmp_path / "pages" / page).is_file()


SOUGHT = {
    "own BERT with CKA": ("guides/distil.md", "a-narrower-student"),
    "own loss": ("guides/extend.md", "a-loss"),
    "prune": ("guides/prune.md", ""),
    "resume": ("guides/train.md", "resume"),
    "two teachers": ("guides/distil.md", "two-or-more-teachers"),
    "TensorBoard": ("guides/logs.md", ""),
    "DeepSpeed": ("guides/scale_out.md", "ddp-fsdp-and-deepspeed"),
    "evaluate a classifier": ("guides/classifiers.md", ""),
    "publish": ("guides/publish.md", ""),
    "evaluate a solver on a file": ("guides/train.md", "evaluate-on-your-own-file"),
    "languages": ("guides/languages.md", ""),
    "causal language model": ("guides/distil.md", "causal-language-models"),
    "labels from a language model": ("guides/more_problems.md", "labels-from-a-language-model"),
    "augmentation": ("guides/more_problems.md", "variants-of-the-problems"),
    "figures": ("../../examples/results/README.md", "how-to-read-the-figures"),
}


@pytest.mark.parametrize("topic", SOUGHT)
def test_topic_is_a_link_of_the_first_page(topic):
    page, anchor = SOUGHT[topic]
    links = re.findall(r"\]\(([\w/.]+)#?([\w-]*)\)", (PAGES / "index.md").read_text("utf-8"))
    assert (page, anchor) in links
    headings = re.findall(r"^## (.*)$", (PAGES / page).read_text("utf-8"), re.MULTILINE)
    slugs = {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings}
    assert not anchor or anchor in slugs


def test_terms_of_links_are_in_the_glossary():
    terms = set(re.findall(r"\{ #([\w-]+) \}", (PAGES / "glossary.md").read_text("utf-8")))
    linked = set()
    for page in PAGES.rglob("*.md"):
        linked |= set(re.findall(r"glossary\.md#([\w-]+)", page.read_text("utf-8")))
    assert linked and linked <= terms
