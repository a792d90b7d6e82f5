import pytest

from hf_mwp.problems.tagging.pos_classes import POS_CLASSES, TAG_SETS, tag_classes


def test_each_tag_has_one_class():
    for tagger, classes in TAG_SETS.items():
        assert tuple(classes) == POS_CLASSES
        tags = [tag for members in classes.values() for tag in members]
        assert len(tags) == len(set(tags)), tagger


def test_temporal_nouns_are_nouns():
    assert tag_classes("jieba")["t"] == tag_classes("ltp")["nt"] == "noun"


def test_what_follows_a_colon_does_not_count():
    assert tag_classes("ltp:models/legacy") == tag_classes("ltp")
    assert tag_classes("another") == {}


def test_jiebas_own_dictionary_has_the_tags():
    jieba = pytest.importorskip("jieba")
    with jieba.get_dict_file() as lines:
        found = {line.decode("utf-8").split()[2] for line in lines}
    assert {"n", "t", "m", "q", "v", "r"} <= found
    # `w`, `x` and `mg`, `rr` come from its rules for what the dictionary lacks, or from other dictionaries.
    known = {tag for tag in tag_classes("jieba") if tag in found}
    assert known >= {"n", "nr", "ns", "nt", "nz", "t", "m", "mq", "q", "v", "vn", "vd", "r"}
