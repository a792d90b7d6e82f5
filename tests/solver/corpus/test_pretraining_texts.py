import gzip
import json
from collections import Counter

import pytest

from hf_mwp.solver.corpus import read_texts
from hf_mwp.solver.data import DataError


def write(path, *lines):
    content = "".join(f"{line}\n" for line in lines).encode("utf-8", "surrogateescape")
    path.write_bytes(gzip.compress(content) if path.suffix == ".gz" else content)
    return path


@pytest.mark.parametrize("name", ["a.txt", "a.txt.gz"])
def test_lines(tmp_path, name):
    path = write(tmp_path / name, "\ufeff小明有4个苹果  ", "", "   ", "\t甲乙相距80千米\r", "求面积")
    assert list(read_texts([path])) == ["小明有4个苹果", "甲乙相距80千米", "求面积"]
    assert list(read_texts(str(path))) == list(read_texts([path]))


@pytest.mark.parametrize("name", ["a.jsonl", "a.jsonl.gz"])
def test_records(tmp_path, name):
    rows = [
        {"text": "小明有4个苹果"},
        {"question": "求面积", "answer": 3},
        {"body": "Tom has 3.", "question": "More?"},
    ]
    path = write(tmp_path / name, *map(json.dumps, rows))
    assert list(read_texts([path])) == ["小明有4个苹果", "求面积", "Tom has 3. More?"]


def test_other_records(tmp_path):
    array = write(tmp_path / "a.json", json.dumps([{"text": "求面积"}]))
    table = write(tmp_path / "a.csv", "id,text", "1,求周长")
    assert list(read_texts([array, table])) == ["求面积", "求周长"]


def test_texts_that_differ_in_numbers_and_spaces_alone_are_one(tmp_path):
    first = write(tmp_path / "a.txt", "有4个苹果", "有5 个苹果", "有(3/8)个苹果", "有４个梨", "有四个苹果")
    second = write(tmp_path / "b.txt", "有9个梨", "有9个桃")
    counts = Counter()
    assert list(read_texts([first, second], counts=counts)) == ["有4个苹果", "有４个梨", "有9个桃"]
    assert counts == {"read": 7, "kept": 3, "duplicate": 4}


def test_number_words_count_in_english(tmp_path):
    path = write(tmp_path / "a.txt", "He has two apples", "He has 3 apples")
    assert list(read_texts(path)) == ["He has two apples"]
    assert list(read_texts(path, language="zh")) == ["He has two apples", "He has 3 apples"]


def test_texts_of_other_sources_are_left_out(tmp_path):
    path = write(tmp_path / "a.txt", "有4个苹果", "有4个梨", "有5个苹果")
    held_out = write(tmp_path / "test.jsonl", json.dumps({"text": "有9个苹果"}))
    counts = Counter()
    assert list(read_texts(path, exclude=held_out, counts=counts)) == ["有4个梨"]
    assert counts == {"read": 3, "kept": 1, "excluded": 2}


@pytest.mark.parametrize(
    "same",
    [
        "有九个苹果．",
        "有 9 个苹果",
        "有９个苹果？",
        "有十五个苹果！",
        "有(3/8)个苹果",
        "有3/8个苹果",
        "「有1.5个苹果」",
    ],
)
def test_no_way_to_write_a_text_gets_it_past_the_exclusion(tmp_path, same):
    path = write(tmp_path / "a.txt", same, "有4个梨")
    held_out = write(tmp_path / "held_out.txt", "有3个苹果。")
    assert list(read_texts(path, exclude=held_out)) == ["有4个梨"]


@pytest.fixture
def data_dir(tmp_path):
    folder = tmp_path / "data" / "ape210k"
    folder.mkdir(parents=True)
    for part, texts in {"train": ["有4个梨", "有4个桃"], "valid": ["有5个桃"], "test": ["有6个杏"]}.items():
        rows = [{"id": text, "original_text": text, "equation": "no equation", "ans": "1"} for text in texts]
        write(folder / f"{part}.jsonl", *map(json.dumps, rows))
    return tmp_path / "data"


def test_data_sets(data_dir):
    assert list(read_texts("ape210k", data_dir=data_dir)) == ["有4个梨", "有4个桃"]
    assert list(read_texts(["ape210k:test", "ape210k"], data_dir=data_dir)) == ["有6个杏", "有4个梨", "有4个桃"]
    # A name alone stands for the parts that are not to be seen.
    assert list(read_texts("ape210k", exclude="ape210k", data_dir=data_dir)) == ["有4个梨"]
    assert list(read_texts("ape210k", exclude=["ape210k:test"], data_dir=data_dir)) == ["有4个梨", "有4个桃"]


def test_the_shipped_data_set():
    counts = Counter()
    texts = list(read_texts("math23k", exclude="math23k", counts=counts))
    # So many training problems differ from a held-out one in numbers, numerals, punctuation and spaces alone (445 in
    # numbers and spaces); 659 of the others differ from another training problem in numbers and spaces.
    assert counts == {"read": 21_162, "kept": 19_826, "duplicate": 659, "excluded": 677}
    assert len(texts) == len(set(texts)) == 19_826


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("nothing.txt", "nothing.txt: .*ape210k, .*ape210k:valid"),
        ("math24k", "math24k: .*math23k"),
        ("math23k:dev", "'dev'.*train, validation, test, all"),
        ("a.xml", r"a\.xml.*\.txt, \.jsonl, \.json, \.csv.*\.gz"),
        (".", r"^\.: "),
    ],
)
@pytest.mark.parametrize("where", ["source", "exclude"])
def test_wrong_sources_are_named_at_once(tmp_path, monkeypatch, source, message, where):
    monkeypatch.chdir(tmp_path)
    good = write(tmp_path / "a.txt", "求面积")
    write(tmp_path / "a.xml", "")
    with pytest.raises(DataError, match=message):
        read_texts(*([[good, source]] if where == "source" else [good, source]))


def test_control_characters_are_not_read_and_long_texts_are_refused(tmp_path):
    path = tmp_path / "texts.txt"
    path.write_text("\x1b[31m有3\x1b[0m个\x00\n\x1b[0m\n", encoding="utf-8")
    assert list(read_texts(path)) == ["有3个"]
    path.write_text("有3个\n" + "苹" * 100_001 + "\n", encoding="utf-8")
    with pytest.raises(DataError, match=f"{path}, line 2.*100,000 characters"):
        list(read_texts(path))


def test_a_part_that_is_not_there(data_dir):
    (data_dir / "ape210k" / "test.jsonl").unlink()
    with pytest.raises(DataError, match="ape210k.* test .*train, validation"):
        list(read_texts("ape210k:test", data_dir=data_dir))


@pytest.mark.parametrize(
    ("name", "lines", "message"),
    [
        ("a.txt", ["有4个梨", "\udcff"], "a.txt, line 2.*UTF-8"),
        ("a.jsonl", ['{"text": "梨"}', "{"], "a.jsonl, line 2: .*JSON"),
        ("a.jsonl", ['{"text": [3]}'], "a.jsonl, line 1, field 'text': .*string.* list"),
        ("a.jsonl", ['{"id": 3}'], "a.jsonl, line 1: no field has the usual name of a text.*text=FIELD"),
        ("a.jsonl", ['{"text": "\\ud800"}'], "a.jsonl, line 1, field 'text': .*UTF-8"),
    ],
)
def test_damaged_files_name_the_line(tmp_path, name, lines, message):
    with pytest.raises(DataError, match=message):
        list(read_texts(write(tmp_path / name, *lines)))


def test_a_cut_off_file_names_the_line_after_the_texts_before_it(tmp_path):
    path = write(tmp_path / "a.txt.gz", *(f"第{chr(0x4E00 + index)}题" for index in range(3000)))
    path.write_bytes(path.read_bytes()[:-200])
    texts = read_texts(path)
    read = []
    with pytest.raises(DataError, match=r"a\.txt\.gz, line \d\d\d\d"):
        read.extend(texts)
    assert len(read) > 1000


@pytest.mark.slow
@pytest.mark.shared_data
def test_the_corpus_of_the_shared_data(shared_data):
    counts = Counter()
    held_out = ["math23k", "ape210k", "hmwp", "cm17k"]
    path = shared_data / "zh_extra" / "mlm_corpus.txt.gz"
    texts = sum(1 for _ in read_texts(path, held_out, data_dir=shared_data, counts=counts))
    # No text of the corpus stands in a held-out part, but 1,080 have the masked text of one that does.
    assert counts == {"read": 55_878, "kept": 53_577, "duplicate": 1221, "excluded": 1080} and texts == 53_577
