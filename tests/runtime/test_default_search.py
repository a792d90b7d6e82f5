import json

import pytest

from hf_mwp.runtime.default_search import DefaultSearch
from hf_mwp.utils.usage_error import UsageError


def test_what_is_saved_is_read(tmp_path):
    for search in (DefaultSearch(), DefaultSearch(8, True), DefaultSearch(20, "en")):
        search.save_pretrained(tmp_path)
        assert DefaultSearch.from_pretrained(tmp_path) == search


def test_without_a_file_the_search_is_greedy(tmp_path):
    assert DefaultSearch.from_pretrained(tmp_path) == DefaultSearch(num_beams=1, rerank=False)


def test_fields_of_others_are_passed_over(tmp_path):
    (tmp_path / "generation_config.json").write_text(json.dumps({"num_beams": 5, "transformers_version": "5.23.0"}))
    assert DefaultSearch.from_pretrained(tmp_path) == DefaultSearch(5)


@pytest.mark.parametrize(
    "content", ['{"num_bea', "[]", '{"num_beams": 0}', '{"num_beams": "5"}', '{"num_beams": true}', '{"rerank": 1}']
)
def test_a_damaged_file_is_named(content, tmp_path):
    (tmp_path / "generation_config.json").write_text(content)
    with pytest.raises(UsageError, match=r"generation_config\.json"):
        DefaultSearch.from_pretrained(tmp_path)


def test_a_folder_that_is_gone_says_nothing(tmp_path):
    assert DefaultSearch.from_pretrained(tmp_path / "gone") == DefaultSearch()
