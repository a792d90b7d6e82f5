import pytest

from hf_mwp.runtime.problems import ProblemError, load_tagger
from hf_mwp.runtime.tagging.pos_tagger import fingerprint_of


@pytest.mark.parametrize("name", ["", "Jieba", "ltp", "ltp:", "jieba:dictionary", "stanza"])
def test_unknown_tagger_is_refused(name):
    with pytest.raises(ProblemError, match="'jieba'.*'ltp:"):
        load_tagger(name)


def test_fingerprints_differ_by_facts_names_and_contents(tmp_path):
    first = tmp_path / "a"
    second = tmp_path / "b"
    for path in (first, second):
        path.write_text("model")
    fingerprint = fingerprint_of(["x", "1"], [first])
    assert fingerprint == fingerprint_of(["x", "1"], [first])
    different = {fingerprint_of(["x", "2"], [first]), fingerprint_of(["x1"], [first])}
    different |= {fingerprint_of(["x", "1"], [second]), fingerprint_of(["x", "1"])}
    first.write_text("other")
    different.add(fingerprint_of(["x", "1"], [first]))
    assert len(different | {fingerprint}) == 6
