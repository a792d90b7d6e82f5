"""The texts for pretraining that come with the repository."""

import gzip
from collections import Counter

import pytest

from hf_mwp.runtime.problems.text_keys import TextKeys
from hf_mwp.solver.data.sources import read_part


pytestmark = pytest.mark.slow

# The test split of CM17K is not available, and only half of Ape210k's.
HELD_OUT = {
    "math23k": ("validation", "test"),
    "hmwp": ("validation", "test"),
    "ape210k": ("validation", "test"),
    "ape_clean": ("test",),
    "cm17k": ("validation",),
}


@pytest.fixture(scope="module")
def key_counts(repository):
    """How often each text occurs, whatever its spaces, its punctuation, and the way it writes numbers."""
    path = repository / "examples" / "data" / "corpus" / "mlm_corpus.txt.gz"
    texts = gzip.decompress(path.read_bytes()).decode("utf-8").splitlines()
    return Counter(TextKeys.of(text).exact for text in texts)


@pytest.mark.shared_data
@pytest.mark.parametrize("name", HELD_OUT)
def test_no_held_out_problem_is_in_the_corpus(key_counts, name, shared_data):
    rows, _ = read_part(name, shared_data, on_error="skip", parts=HELD_OUT[name])
    assert len(rows) > 500
    assert not [row["id"] for row in rows if TextKeys.of(row["text"]).exact in key_counts]


def test_no_text_occurs_twice(key_counts):
    assert max(key_counts.values()) == 1
