"""Problems of other datasets, and augmented problems, that are added to the training split."""

import re

import pytest

from hf_mwp.solver.data import DataError, dataset_report, load_mwp_dataset, problem_from_row
from tests.slow_parameters import slow_after
from tests.solver.data.problem_files import FIXTURES, load, with_equation, write_lines


def test_problems_are_added_unless_a_split_has_their_masked_text(tmp_path):
    splits = {"train": ["有3个", "拿7个"], "valid": ["换3个"], "test": ["送3个"]}
    for split, texts in splits.items():
        write_lines(tmp_path / "own" / f"{split}.jsonl", with_equation(texts, "x=2+1"))
    extra = [
        {"text": "送9个", "equation": "x=9"},  # of the test split, with another number
        {"text": "换1个", "equation": "x=1"},  # of the validation split
        {"text": "拿2个", "equation": "x=2"},  # of the training split
        {"text": "买4个", "equation": "x=4+1"},
        {"text": "买5个", "equation": "x=5"},  # added already
        {"text": "卖5个", "equation": "x=5", "answer": "6"},
    ]
    path = write_lines(tmp_path / "extra.jsonl", extra)
    dataset, report = load("own", tmp_path, extra_train=[path])
    assert dataset["train"]["text"] == ["有3个", "拿7个", "买4个"]
    assert len(dataset["validation"]) == len(dataset["test"]) == 1
    counts = report.extra[str(path)]
    assert (counts.read, counts.kept, counts.with_constants) == (6, 1, 1)
    assert counts.dropped == {"known": 4, "wrong_value": 1}
    assert re.search(r"added to train(?s:.*)\b4 left out", str(report))
    assert dataset_report(dataset).extra == report.extra


def test_excluded_texts_are_not_added(tmp_path):
    path = write_lines(tmp_path / "own.jsonl", with_equation(["有3个"]))
    extra = write_lines(tmp_path / "extra.jsonl", with_equation(["买4个", "卖5个", "6+7=?"]))
    excluded = write_lines(tmp_path / "excluded.jsonl", [{"text": "卖 8个"}, {"text": "1+1=?"}])
    dataset, report = load(path, extra_train=extra, extra_exclude=[excluded])
    assert dataset["train"]["text"] == ["有3个", "买4个"]
    assert report.extra[str(extra)].dropped == {"excluded": 2}


def test_added_problems_obey_the_options(tmp_path):
    path = write_lines(tmp_path / "own.jsonl", with_equation(["第1个和1"], "x=1"))
    extra = write_lines(tmp_path / "extra.jsonl", [{"text": "3/4+5=?", "equation": "x=3/4+5"}, {"text": "没有方程1"}])
    with extra.open("a", encoding="utf-8") as file:
        file.write('{"text": "cut')
    with pytest.raises(DataError, match="extra.jsonl, line 3"):
        load_mwp_dataset(path, extra_train=extra)
    dataset, report = load(path, extra_train=str(extra), on_error="skip")
    # A text without words and without a language has the language of the dataset.
    assert dataset["train"]["text"][-1] == "3/4+5=?"
    assert dataset["train"]["language"][-1] == "zh"
    assert report.damaged == 1
    assert report.extra[str(extra)].dropped == {"no_equation": 1}
    dataset = load_mwp_dataset(path, extra_train=[extra], on_error="skip", keep_unusable=True)
    assert dataset["train"]["text"][-1] == "没有方程1"


@pytest.mark.parametrize(
    ("name", "extra"),
    slow_after(2, [("math23k", "hmwp"), ("asdiv_a", "mawps_single:all"), ("math23k", "ape210k:validation")]),
)
def test_splits_of_other_datasets_are_added(name, extra):
    without = load_mwp_dataset(name, FIXTURES)
    dataset, report = load(name, extra_train=[extra])
    num_rows = len(without["train"])
    assert len(dataset["train"]) - num_rows == report.extra[extra].kept > 0
    assert dataset["train"]["text"][:num_rows] == without["train"]["text"]
    assert dataset["test"]["text"] == without["test"]["text"]


@pytest.mark.parametrize(
    ("name", "extra", "message"),
    [
        ("math23k", "ape210k:dev", "'dev'.*train, validation, test, all"),
        ("math23k", "mawps", r"mawps.jsonl, line 2, .*language.: .* en"),
        ("math23k", "nowhere.jsonl", "nowhere.jsonl: .*ape210k"),
        ("math23k", "cm17k", "cm17k.* train .*validation"),
        ("cm17k", "math23k", "math23k: .*training split"),
    ],
)
def test_impossible_sources_are_named(name, extra, message):
    with pytest.raises(DataError, match=message):
        load_mwp_dataset(name, FIXTURES, extra_train=[extra])


@pytest.mark.parametrize("is_split", [True, False])
def test_problems_whose_context_begins_a_held_out_problem_are_not_added(is_split, tmp_path):
    """Numbers and punctuation are ignored, words are not."""
    (tmp_path / "unbiasedmwp").symlink_to(FIXTURES / "unbiasedmwp")
    write_lines(tmp_path / "own" / "train.jsonl", [{"text": "2加3是几？", "equation": "2+3", "answer": "5"}])
    path = tmp_path / "own" / "test.jsonl" if is_split else tmp_path / "excluded.jsonl"
    excluded = [] if is_split else [path]

    def dropped(text):
        write_lines(path, [{"text": text, "answer": "1"}])
        _, report = load("own", tmp_path, extra_train=["unbiasedmwp"], extra_exclude=excluded)
        return report.extra["unbiasedmwp"].dropped

    assert dropped("小明有20元．买了4支笔，每支3元，小红有几元？") == {"held_out_context": 3}
    assert dropped("小明有20元．买了4支花，每支3元，小红有几元？") == {}


def test_reversed_problems_are_added(tmp_path):
    train = [
        {"text": "甲有6个，乙有4个，甲比乙多几个？", "equation": "x=6-4", "answer": "2"},
        {"text": "有3个", "equation": "x=3", "answer": "3"},
    ]
    # The reverse-operation problem with the unknown 6.
    test = [{"text": "乙有5个，甲比乙多3个，甲有多少个？", "equation": "x=5+3", "answer": "8"}]
    extra = [{"text": "买2支笔要8元，一支要多少元？", "equation": "x=8/2", "answer": "4"}]
    write_lines(tmp_path / "own" / "train.jsonl", train)
    write_lines(tmp_path / "own" / "test.jsonl", test)
    path = write_lines(tmp_path / "extra.jsonl", extra)
    dataset, report = load("own", tmp_path, extra_train=[path], augment_reverse=True)
    rows = dataset["train"].to_list()[3:]
    assert [(row["id"], row["file"], row["text"], row["equation"], row["answer"]) for row in rows] == [
        ("1-N1", "train.jsonl", "甲有6个，甲比乙多2个，乙有多少个？", "x=6-2", "4"),
        ("1-N1", "extra.jsonl", "一支要4元，买2支笔要多少元？", "x=4*2", "8"),
        ("1-N0", "extra.jsonl", "一支要4元，买多少支笔要8元？", "x=8/4", "2"),
    ]
    assert report.extra["reversed"].dropped == {"known": 1}
    assert report.extra["reversed"].read == 4
    assert len(dataset["test"]) == 1


def test_held_out_problems_are_reversed():
    without = load_mwp_dataset("math23k", FIXTURES)
    dataset, report = load("math23k", reverse_held_out=True)
    assert dataset["train"].to_list() == without["train"].to_list()
    rows = [(row["text"], row["equation"], row["answer"]) for row in dataset["validation"]]
    assert rows == [
        ("平均分成4段，每段长1.75米，一根绳子长多少米？", "x=1.75*4", "7"),
        ("一根绳子长7米，每段长1.75米，平均分成多少段？", "x=7/1.75", "4"),
    ]
    assert report.splits["validation"].read == 2
    assert re.fullmatch("public, .*reversed", report.scheme)


def test_problems_with_distractors_are_added():
    num_rows = len(load_mwp_dataset("math23k", FIXTURES, extra_train=["unbiasedmwp"])["train"])
    dataset, report = load("math23k", extra_train=["unbiasedmwp"], augment_distractors=True)
    rows = dataset["train"].to_list()
    assert report.extra["distractors"].kept == len(rows) - num_rows > 0
    originals = {row["id"]: problem_from_row(row) for row in rows[:num_rows]}
    for row in rows[num_rows:]:
        original_id, _, num_distractors = row["id"].rpartition("-D")
        problem = problem_from_row(row)
        original = originals[original_id]
        assert len(problem.numbers) == len(original.numbers) + int(num_distractors)
        assert problem.agrees()
        assert problem.equation == original.equation
        assert not problem.context


@pytest.mark.parametrize("option", ["augment_reverse", "augment_distractors"])
def test_augmentation_needs_problems(option):
    with pytest.raises(DataError, match="cm17k: "):
        load_mwp_dataset("cm17k", FIXTURES, **{option: True})
