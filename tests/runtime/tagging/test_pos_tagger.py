import pytest

from hf_mwp.runtime.problems import ProblemError, load_tagger
from hf_mwp.runtime.tagging.pos_tagger import fingerprint_of


@pytest.mark.parametrize("name", ["", "Jieba", "ltp", "ltp:", "jieba:dictionary", "stanza"])
def test_other_names(name):
    with pytest.raises(ProblemError, match="'jieba'.*'ltp:"):
        load_tagger(name)


def test_fingerprints(tmp_path):
    (tmp_path / "a").write_text("model")
    (tmp_path / "b").write_text("model")
    first = fingerprint_of(["x", "1"], [tmp_path / "a"])
    assert first == fingerprint_of(["x", "1"], [tmp_path / "a"])
    others = [
        fingerprint_of(["x", "2"], [tmp_path / "a"]),
        fingerprint_of(["x1"], [tmp_path / "a"]),
        fingerprint_of(["x", "1"], [tmp_path / "b"]),
        fingerprint_of(["x", "1"]),
    ]
    (tmp_path / "a").write_text("other")
    others.append(fingerprint_of(["x", "1"], [tmp_path / "a"]))
    assert len({first, *others}) == 6
