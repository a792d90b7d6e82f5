import json
import shutil

import pytest

from hf_mwp.solver.batches.mwp_processor import MwpProcessor
from hf_mwp.solver.batches.tokenizer_files import tokenizer_digest
from tests.damage import change_fields, cut, swap_words
from tests.tiny import tiny_processor, tiny_tokenizer


FILE = "mwp_processor.json"


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    folder = tmp_path_factory.mktemp("processor")
    tiny_processor(max_length=64).save_pretrained(folder)
    return folder


@pytest.fixture
def folder(saved, tmp_path):
    return shutil.copytree(saved, tmp_path / "processor")


def check_refused(folder, message):
    """Check that the error names the folder and matches the message."""
    with pytest.raises(ValueError, match=message) as error:
        MwpProcessor.from_pretrained(folder)
    assert str(folder) in str(error.value)
    assert "\n" not in str(error.value)


def read_json(path):
    return json.loads(path.read_text("utf-8"))


def test_digest_of_the_tokenizer_is_saved(folder):
    processor = MwpProcessor.from_pretrained(folder)
    digest = read_json(folder / FILE)["tokenizer_digest"]
    assert digest == tokenizer_digest(processor.tokenizer)
    assert len(digest) == 32


def test_another_vocabulary_is_refused(folder):
    swap_words(folder, "果", "盒")
    check_refused(folder, f"(?=.*{FILE}).*tokenizer.json")


def test_only_changes_of_encoded_texts_are_refused(folder):
    path = folder / "tokenizer.json"
    normalizer = read_json(path)["normalizer"]
    # No word of this vocabulary has a capital or small letter.
    change_fields(path, normalizer=normalizer | {"lowercase": not normalizer["lowercase"]})
    assert MwpProcessor.from_pretrained(folder).encode(["小明有4个苹果"])["length"] == [9]
    change_fields(
        path, normalizer=normalizer | {"handle_chinese_chars": False}, pre_tokenizer={"type": "WhitespaceSplit"}
    )
    check_refused(folder, "tokenizer.json")


def test_processor_without_digest_loads(folder):
    fields = read_json(folder / FILE)
    del fields["tokenizer_digest"]
    (folder / FILE).write_text(json.dumps(fields), "utf-8")
    assert MwpProcessor.from_pretrained(folder).max_length == 64


def test_formatting_of_files_does_not_matter(folder):
    path = folder / "tokenizer.json"
    path.write_text(json.dumps(read_json(path), sort_keys=True, ensure_ascii=True), "utf-8")
    MwpProcessor.from_pretrained(folder).save_pretrained(folder / "again")
    assert (folder / FILE).read_bytes() == (folder / "again" / FILE).read_bytes()


def test_state_of_a_call_does_not_change_the_digest():
    tokenizer = tiny_tokenizer()
    before = tokenizer_digest(tokenizer)
    tokenizer("小明", truncation=True, max_length=3, padding="max_length")
    assert tokenizer_digest(tokenizer) == before


@pytest.mark.parametrize("has_digest", [True, False])
def test_missing_or_damaged_tokenizer_file_is_named(folder, has_digest):
    if not has_digest:
        change_fields(folder / FILE, tokenizer_digest=None)
    path = folder / "tokenizer.json"
    path.write_text("{}")
    check_refused(folder, "tokenizer.json")
    shutil.copy(folder / "tokenizer_config.json", path)
    cut(path, 20)
    check_refused(folder, "tokenizer.json cannot be read")
    path.unlink()
    check_refused(folder, "tokenizer.json")
    # Some classes load without their file, with special tokens only.
    change_fields(folder / "tokenizer_config.json", tokenizer_class="BertTokenizer")
    check_refused(folder, "tokenizer.json")
    with pytest.raises(ValueError, match="tokenizer.json"):
        MwpProcessor.build(folder, [])
    (folder / "tokenizer_config.json").write_text("{", "utf-8")
    check_refused(folder, "tokenizer_config.json.*JSON")


def test_unknown_field_is_named(folder):
    change_fields(folder / FILE, spelling=True)
    check_refused(folder, f"(?=.*{FILE})(?=.*'spelling').*newer")


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("operators", None),
        ("operators", "+-"),
        ("operators", ["+", "?"]),
        ("constants", [1]),
        ("constants", ["1", "1"]),
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
    ],
)
def test_wrong_value_is_named(folder, field, value):
    change_fields(folder / FILE, **{field: value})
    check_refused(folder, FILE)


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b"3", b"{}", b'{"operators": ["+"]}', b"\xff\xfe"])
def test_damaged_file_is_named(folder, content):
    (folder / FILE).write_bytes(content)
    check_refused(folder, FILE)
