import json
import re
import shutil

import pytest

from hf_mwp.solver.batches.mwp_processor import MwpProcessor
from hf_mwp.solver.batches.tokenizer_files import tokenizer_digest
from tests.damage import change_fields, cut, swap_words
from tests.tiny import tiny_processor, tiny_tokenizer


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    folder = tmp_path_factory.mktemp("processor")
    tiny_processor(max_length=64).save_pretrained(folder)
    return folder


@pytest.fixture
def folder(saved, tmp_path):
    return shutil.copytree(saved, tmp_path / "processor")


def refusal(folder):
    with pytest.raises(ValueError) as error:
        MwpProcessor.from_pretrained(folder)
    assert str(folder) in str(error.value) and "\n" not in str(error.value)
    return str(error.value)


def test_the_tokenizers_digest_is_kept(folder):
    fields = json.loads((folder / "mwp_processor.json").read_text("utf-8"))
    processor = MwpProcessor.from_pretrained(folder)
    assert fields["tokenizer_digest"] == tokenizer_digest(processor.tokenizer)
    assert len(fields["tokenizer_digest"]) == 32


def test_another_vocabulary_is_refused(folder):
    swap_words(folder, "果", "盒")
    message = refusal(folder)
    assert "tokenizer.json" in message and "mwp_processor.json" in message


def test_other_splitting_is_refused(folder):
    tokenizer = json.loads((folder / "tokenizer.json").read_text("utf-8"))
    tokenizer["normalizer"]["lowercase"] = not tokenizer["normalizer"]["lowercase"]
    (folder / "tokenizer.json").write_text(json.dumps(tokenizer), "utf-8")
    processor = MwpProcessor.from_pretrained(folder)  # no word of this vocabulary has a capital or small letter
    tokenizer["pre_tokenizer"] = {"type": "WhitespaceSplit"}
    tokenizer["normalizer"]["handle_chinese_chars"] = False
    (folder / "tokenizer.json").write_text(json.dumps(tokenizer), "utf-8")
    assert processor.encode(["小明有4个苹果"])["length"] == [9]
    assert "tokenizer.json" in refusal(folder)


def test_a_processor_without_digest_loads(folder):
    path = folder / "mwp_processor.json"
    fields = json.loads(path.read_text("utf-8"))
    del fields["tokenizer_digest"]
    path.write_text(json.dumps(fields), "utf-8")
    assert MwpProcessor.from_pretrained(folder).max_length == 64


def test_how_files_are_written_does_not_matter(folder):
    tokenizer = json.loads((folder / "tokenizer.json").read_text("utf-8"))
    (folder / "tokenizer.json").write_text(json.dumps(tokenizer, sort_keys=True, ensure_ascii=True), "utf-8")
    processor = MwpProcessor.from_pretrained(folder)
    processor.save_pretrained(folder / "again")
    first, second = ((each / "mwp_processor.json").read_bytes() for each in (folder, folder / "again"))
    assert first == second


def test_what_a_call_leaves_in_a_tokenizer_does_not_matter():
    tokenizer = tiny_tokenizer()
    before = tokenizer_digest(tokenizer)
    tokenizer("小明", truncation=True, max_length=3, padding="max_length")
    assert tokenizer_digest(tokenizer) == before


@pytest.mark.parametrize("digest", [True, False])
def test_a_tokenizer_file_that_is_missing_or_damaged_is_named(folder, digest):
    if not digest:
        change_fields(folder / "mwp_processor.json", tokenizer_digest=None)
    path = folder / "tokenizer.json"
    path.write_text("{}")
    assert "tokenizer.json" in refusal(folder)
    shutil.copy(folder / "tokenizer_config.json", path)
    cut(path, 20)
    assert re.search("tokenizer.json cannot be read", refusal(folder))
    path.unlink()
    assert "tokenizer.json" in refusal(folder)
    # Some classes go on without their file, with special tokens alone.
    change_fields(folder / "tokenizer_config.json", tokenizer_class="BertTokenizer")
    assert "tokenizer.json" in refusal(folder)
    (folder / "tokenizer_config.json").write_text("{", "utf-8")
    assert re.search("tokenizer_config.json.*JSON", refusal(folder))


def test_a_tokenizer_without_words_is_refused_in_building_too(folder):
    (folder / "tokenizer.json").unlink()
    change_fields(folder / "tokenizer_config.json", tokenizer_class="BertTokenizer")
    with pytest.raises(ValueError, match="tokenizer.json"):
        MwpProcessor.build(folder, [])


def test_an_unknown_field_is_named(folder):
    change_fields(folder / "mwp_processor.json", spelling=True)
    message = refusal(folder)
    assert "mwp_processor.json" in message and "'spelling'" in message and "newer" in message


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("operators", None),
        ("operators", "+-"),
        ("constants", [1]),
        ("language", 3),
        ("language", "fr"),
        ("parse_number_words", "no"),
        ("number_reading", None),
        ("number_reading", "newest"),
        ("indexed_numbers", 1),
        ("num_index_tokens", "16"),
        ("num_index_tokens", -1),
        ("max_length", "many"),
        ("max_length", True),
        ("max_length", 0),
        ("tokenizer_digest", 5),
        ("operators", ["+", "?"]),
        ("constants", ["1", "1"]),
    ],
)
def test_a_wrong_value_is_named(folder, field, value):
    change_fields(folder / "mwp_processor.json", **{field: value})
    message = refusal(folder)
    assert "mwp_processor.json" in message


@pytest.mark.parametrize("content", ["", "{", "[]", "3", "{}", '{"operators": ["+"]}', b"\xff\xfe"])
def test_a_damaged_file_is_named(folder, content):
    path = folder / "mwp_processor.json"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    assert "mwp_processor.json" in refusal(folder)
