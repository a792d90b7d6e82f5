import json
import math

import pytest

from hf_mwp.runtime.default_search import DefaultSearch, FolderSearch
from hf_mwp.utils.usage_error import UsageError


@pytest.mark.parametrize(
    "search", [DefaultSearch(), DefaultSearch(8, True), DefaultSearch(20, "en"), DefaultSearch(8, True, 6.5)]
)
def test_loaded_search_equals_the_saved_one(tmp_path, search):
    search.save_pretrained(tmp_path)
    assert DefaultSearch.from_pretrained(tmp_path) == search


def test_without_a_file_the_search_is_greedy(tmp_path):
    assert DefaultSearch.from_pretrained(tmp_path) == DefaultSearch(num_beams=1, rerank=False)


def test_file_without_a_margin_does_not_name_it(tmp_path):
    for search in (DefaultSearch(8), DefaultSearch(8, score_margin=math.inf)):
        search.save_pretrained(tmp_path)
        assert json.loads((tmp_path / "generation_config.json").read_text()) == {"num_beams": 8, "rerank": False}


@pytest.mark.parametrize("score_margin", [0, -1, "6", True])
def test_impossible_margin_is_refused(tmp_path, score_margin):
    (tmp_path / "generation_config.json").write_text(json.dumps({"num_beams": 8, "score_margin": score_margin}))
    with pytest.raises(UsageError, match="score_margin"):
        DefaultSearch.from_pretrained(tmp_path)


def test_margin_of_the_default_search_applies_only_to_it(tmp_path):
    DefaultSearch(8, score_margin=6).save_pretrained(tmp_path)
    folder = FolderSearch(tmp_path, "zh")
    assert folder.search() == (None, 8, 6)
    assert folder.search(score_margin=math.inf) == (None, 8, math.inf)
    assert folder.search(5) == (None, 5, None)
    assert folder.search(5, score_margin=3) == (None, 5, 3)


def test_fields_of_transformers_are_ignored(tmp_path):
    (tmp_path / "generation_config.json").write_text(json.dumps({"num_beams": 5, "transformers_version": "5.23.0"}))
    assert DefaultSearch.from_pretrained(tmp_path) == DefaultSearch(5)


def test_folder_that_is_missing_has_the_default_search(tmp_path):
    assert DefaultSearch.from_pretrained(tmp_path / "missing") == DefaultSearch()
