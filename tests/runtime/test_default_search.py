import json

import pytest

from hf_mwp.runtime.default_search import DefaultSearch


@pytest.mark.parametrize("search", [DefaultSearch(), DefaultSearch(8, True), DefaultSearch(20, "en")])
def test_loaded_search_equals_the_saved_one(tmp_path, search):
    search.save_pretrained(tmp_path)
    assert DefaultSearch.from_pretrained(tmp_path) == search


def test_without_a_file_the_search_is_greedy(tmp_path):
    assert DefaultSearch.from_pretrained(tmp_path) == DefaultSearch(num_beams=1, rerank=False)


def test_fields_of_transformers_are_ignored(tmp_path):
    (tmp_path / "generation_config.json").write_text(json.dumps({"num_beams": 5, "transformers_version": "5.23.0"}))
    assert DefaultSearch.from_pretrained(tmp_path) == DefaultSearch(5)


def test_folder_that_is_missing_has_the_default_search(tmp_path):
    assert DefaultSearch.from_pretrained(tmp_path / "missing") == DefaultSearch()
