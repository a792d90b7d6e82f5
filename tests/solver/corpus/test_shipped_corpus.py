"""The texts for pretraining that come with the repository."""

import gzip
import re
from collections import Counter

import pytest

from hf_mwp.runtime.problems.text_keys import TextKeys
from hf_mwp.solver.data.sources import read_part


pytestmark = pytest.mark.slow

# Of CM17K the test split is not available, and of Ape210k only half of it.
EXCLUDED = {
    "math23k": ("validation", "test"),
    "hmwp": ("validation", "test"),
    "ape210k": ("validation", "test"),
    "ape_clean": ("test",),
    "cm17k": ("validation",),
}


@pytest.fixture(scope="module")
def texts(repository):
    path = repository / "examples" / "data" / "corpus" / "mlm_corpus.txt.gz"
    return gzip.decompress(path.read_bytes()).decode("utf-8").splitlines()


@pytest.fixture(scope="module")
def keys(texts):
    """How often each text is there, whatever its spaces, its punctuation, and the way it writes numbers."""
    return Counter(TextKeys.of(text).exact for text in texts)


def held_out(keys, name, folder):
    rows, _ = read_part(name, folder, on_error="skip", parts=EXCLUDED[name])
    assert len(rows) > 500
    return [row["id"] for row in rows if TextKeys.of(row["text"]).exact in keys]


def test_no_held_out_problem_of_math23k_is_in_it(keys):
    assert held_out(keys, "math23k", None) == []


@pytest.mark.shared_data
@pytest.mark.parametrize("name", EXCLUDED)
def test_no_held_out_problem_is_in_it(keys, name, shared_data):
    assert held_out(keys, name, shared_data) == []


def test_no_text_is_there_twice(keys):
    assert [key for key, count in keys.items() if count > 1] == []


def test_its_page_counts_what_is_there(texts, repository):
    page = (repository / "examples" / "data" / "corpus" / "README.md").read_text("utf-8")
    count, millions = re.search(r"([\d,]+) problem texts, .*?([\d.]+) million characters", page).groups()
    assert int(count.replace(",", "")) == len(texts)
    assert float(millions) == round(sum(map(len, texts)) / 1e6, 2)
