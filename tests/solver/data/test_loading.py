"""Options of `load_mwp_dataset`: usability, overlap, held-out shares, reports, and own files."""

import gzip
import json
import re
from pathlib import Path

import numpy as np
import pytest

from hf_mwp.runtime.problems import MathWordProblem
from hf_mwp.solver.data import FEATURES, DataError, dataset_report, load_mwp_dataset, problem_from_row
from tests.solver.data.problem_files import FIXTURES, ids_of, load, with_equation, write_lines


# Records, and why they cannot be trained on.
FAULTS = [
    ({"text": "3和4", "equation": "x=3+4", "answer": "7"}, None),
    ({"text": "3和4", "equation": "x=3+4"}, None),
    ({"text": "3和4", "answer": "7"}, "no_equation"),
    ({"text": "3和4", "equation": "x+y=3;x-y=4", "answer": "7"}, "system_of_equations"),
    ({"text": "3和4", "equation": "3*x=4*y", "answer": "7"}, "several_unknowns"),
    ({"text": "3和4", "equation": "3*x=4", "answer": "7"}, "unsolved_equation"),
    ({"text": "3和4", "equation": "x=3*(x+4)", "answer": "7"}, "unsolved_equation"),
    ({"text": "3和4", "equation": "x=3@4", "answer": "7"}, "unreadable_equation"),
    ({"text": "3和4", "equation": "x=3千米", "answer": "3"}, "unreadable_equation"),
    ({"text": "3和4", "equation": "x=3/(4-4)", "answer": "7"}, "not_computable"),
    ({"text": "3和4", "equation": "x=3*4", "answer": "7"}, "wrong_value"),
    ({"text": "3和4", "equation": "x=3*4", "answer": ["12", "7"]}, "several_answers"),
    ({"text": "3和4", "equation": "x=3*4", "answer": "没有"}, "no_answer"),
    ({"text": "没有", "equation": "x=1+1", "answer": "2"}, "no_numbers"),
]
FAULT_COUNTS = {
    "no_equation": 1,
    "system_of_equations": 1,
    "several_unknowns": 1,
    "unsolved_equation": 2,
    "unreadable_equation": 2,
    "not_computable": 1,
    "wrong_value": 1,
    "no_numbers": 1,
}
UNANSWERED_COUNTS = {"several_answers": 1, "no_answer": 1}


def test_faulty_problems_are_left_out_of_training(tmp_path):
    path = write_lines(tmp_path / "own.jsonl", [record for record, _ in FAULTS])
    dataset, report = load(path)
    assert dataset["train"]["line"] == [1, 2]
    split = report.splits["train"]
    assert split.dropped == FAULT_COUNTS | UNANSWERED_COUNTS
    assert (split.read, split.kept, split.kept_with) == (len(FAULTS), 2, {})
    assert re.search(r"own\.jsonl, line 11.*x=3\*4.*\b12\b.*\b7\b", split.examples["wrong_value"][0])
    assert re.search(r"1 left out.*\n.*line 11,", str(report))
    assert len(load_mwp_dataset(path, keep_unusable=True)["train"]) == len(FAULTS)


def test_held_out_problems_are_kept_if_they_have_one_answer(tmp_path):
    path = write_lines(tmp_path / "test.jsonl", [record for record, _ in FAULTS])
    dataset, report = load(path)
    assert list(dataset) == ["test"]
    split = report.splits["test"]
    assert split.dropped == UNANSWERED_COUNTS
    assert split.kept == len(dataset["test"]) == len(FAULTS) - 2
    assert split.kept_with == FAULT_COUNTS


@pytest.fixture
def overlapping(tmp_path) -> Path:
    train = with_equation(["有3个", "买3个", "买３个 ", "卖3个"])
    # A training problem that is left out because of its equation overlaps all the same.
    train.append({"text": "吃9个", "equation": "x=9", "answer": "8"})
    write_lines(tmp_path / "train.jsonl", train)
    write_lines(tmp_path / "dev.jsonl", with_equation(["卖 3 个", "送3个"], answer="3"))
    write_lines(tmp_path / "test.jsonl", with_equation(["买3个", "换3个", "吃3个", "送3个"], answer="3"))
    return tmp_path


def test_overlap_is_counted(overlapping):
    dataset, report = load(overlapping)
    overlaps = {split: counts.overlap for split, counts in report.splits.items()}
    assert overlaps == {"train": None, "validation": 1, "test": 2}
    assert [len(rows) for rows in dataset.values()] == [4, 2, 4]
    assert re.search(r"\b2 .*masked text", str(report))


@pytest.mark.parametrize("drop_overlap", ["test", True])
def test_overlap_is_dropped_from_test(overlapping, drop_overlap):
    dataset, report = load(overlapping, drop_overlap=drop_overlap)
    assert dataset["test"]["text"] == ["换3个", "送3个"]
    assert [len(rows) for rows in dataset.values()] == [4, 2, 2]
    assert report.drop_overlap == "test"
    assert report.splits["test"].overlap == 2
    assert report.splits["test"].dropped == {"overlap": 2}


def test_overlap_is_dropped_from_train(overlapping):
    dataset, report = load(overlapping, drop_overlap="train")
    assert dataset["train"]["text"] == ["有3个"]
    assert [len(rows) for rows in dataset.values()] == [1, 2, 4]
    assert report.splits["train"].dropped == {"overlap": 3, "wrong_value": 1}


def test_overlap_ignores_punctuation_and_the_writing_of_numbers(tmp_path):
    write_lines(tmp_path / "own" / "train.jsonl", with_equation(["小明有3个苹果，吃了２个．"]))
    write_lines(tmp_path / "own" / "test.jsonl", [{"text": "小明有三个苹果，吃了两个 ？", "answer": "1"}])
    extra = write_lines(tmp_path / "extra.jsonl", with_equation(["小明有7个苹果，吃了五个"]))
    _, report = load("own", tmp_path, extra_train=[extra])
    assert report.splits["test"].overlap == 1
    assert report.extra[str(extra)].dropped == {"excluded": 1}


def test_validation_fraction(tmp_path):
    rows = [{"text": f"第{i}个和{i}", "equation": f"x={i}+{i}", "answer": str(2 * i)} for i in range(50)]
    path = write_lines(tmp_path / "own.jsonl", rows)
    dataset, report = load(path, validation_fraction=0.2)
    ids = ids_of(dataset)
    assert len(ids["train"]) == 40
    assert len(ids["validation"]) == 10
    assert not set(ids["train"]) & set(ids["validation"])
    assert ids["train"] == sorted(ids["train"], key=int)
    assert ids == ids_of(load_mwp_dataset(path, validation_fraction=0.2))
    assert report.validation_fraction == 0.2
    assert re.fullmatch("files, 0.2 .*validation", report.scheme)


@pytest.mark.parametrize(("fraction", "sizes"), [(0.1, [2, 1]), (0.9, [1, 2])])
def test_at_least_one_problem_is_held_out_and_never_all(tmp_path, fraction, sizes):
    path = write_lines(tmp_path / "own.jsonl", with_equation(["第1个和3", "第2个和3", "第3个和3"]))
    dataset = load_mwp_dataset(path, validation_fraction=fraction)
    assert [len(rows) for rows in dataset.values()] == sizes


def test_dataset_with_a_validation_split_keeps_it():
    dataset, report = load("math23k", validation_fraction=0.5)
    assert len(dataset["train"]) == 3
    assert report.validation_fraction == 0


def test_report_travels_with_the_data(tmp_path):
    from datasets import Dataset, load_from_disk

    dataset, report = load("math23k", split_scheme="five_fold", fold=2)
    assert dataset_report(dataset) == report
    mapped = dataset["test"].map(lambda row: {"length": len(row["text"])}).select(range(1))
    assert dataset_report(mapped) == report
    dataset.save_to_disk(tmp_path / "saved")
    assert dataset_report(load_from_disk(tmp_path / "saved")) == report
    assert (report.split_scheme, report.fold, report.scheme) == ("five_fold", 2, "five_fold, fold 2")
    assert report.to_dict()["splits"]["test"]["kept"] == 1
    with pytest.raises(DataError, match="load_mwp_dataset"):
        dataset_report(Dataset.from_list([{"text": "3"}]))


def test_own_files(tmp_path):
    (tmp_path / "dev.csv").write_text("Question,Equation,Answer\nTwo and 3?,2+3,5\n", encoding="utf-8")
    records = [{"body": "有3个。", "question": "共几个？ ", "formula": "3", "ans": 3, "language": "zh", "other": [1]}]
    (tmp_path / "train.json.gz").write_bytes(gzip.compress(json.dumps(records).encode()))
    dataset = load_mwp_dataset(tmp_path)
    assert list(dataset) == ["train", "validation"]
    assert dataset["train"][0]["text"] == "有3个。 共几个？"
    row = dataset["validation"][0]
    assert (row["language"], row["dataset"], row["line"], row["id"]) == ("en", "dev", 2, "2")
    assert problem_from_row(row).expression.to_infix() == "N0+N1"
    assert ids_of(load_mwp_dataset("dev.csv", data_dir=tmp_path)) == {"validation": ["2"]}


def test_two_files_of_one_split_are_refused(tmp_path):
    for name in ("train.jsonl", "valid.tsv", "dev.csv"):
        (tmp_path / name).write_text("{}")
    with pytest.raises(DataError, match="dev.csv.*valid.tsv|valid.tsv.*dev.csv"):
        load_mwp_dataset(tmp_path)


def test_rows_may_have_numbers():
    problem = problem_from_row({"text": "3和0.5？", "id": 0, "answer": np.float64(3.5), "equation": np.int64(3)})
    assert (problem.id, problem.answer, problem.equation) == ("0", "3.5", "3")


def test_nan_is_a_missing_value(tmp_path):
    row = dict.fromkeys(("id", "answer", "equation", "language", "context", "kind"), float("nan"))
    assert problem_from_row({"text": "3和0.5？", **row}) == MathWordProblem("3和0.5？")
    with pytest.raises(TypeError, match="nan"):
        problem_from_row({"text": float("nan")})
    path = write_lines(tmp_path / "own.jsonl", [{"text": "3 and 4?", "equation": "3+4", "answer": float("nan")}])
    assert load_mwp_dataset(path)["train"]["answer"] == [""]


def test_texts_without_words_have_the_language_of_their_source(tmp_path):
    sums = [{"text": "36cm÷4=?"}, {"text": "3+4=?", "language": "en"}]
    chinese = {"text": "买3个"}

    def languages(train):
        write_lines(tmp_path / "train.jsonl", train)
        write_lines(tmp_path / "test.jsonl", sums)
        dataset = load_mwp_dataset(tmp_path, keep_unusable=True)
        return dataset["train"]["language"], dataset["test"]["language"]

    assert languages([*sums, chinese]) == (["zh", "en", "zh"], ["zh", "en"])
    assert languages(sums) == (["en", "en"], ["en", "en"])


@pytest.mark.parametrize(
    ("record", "message"),
    [
        ({"equation": "3"}, "no field .*text=FIELD"),
        ({"text": ""}, "field 'text': .*empty"),
        ({"text": "3" * 100_001}, "field 'text': .*100,000 characters"),
        ({"text": "3", "language": "fr"}, "field 'language': .*'zh' or 'en'.*'fr'"),
        ({"text": "3", "answer": {"a": 1}}, "field 'answer': .*string.* dict"),
    ],
)
def test_damaged_records_of_own_files_are_named(tmp_path, record, message):
    path = write_lines(tmp_path / "own.jsonl", [{"text": "3"}, record])
    with pytest.raises(DataError, match=f"line 2[,:] {message}"):
        load_mwp_dataset(path)


def test_empty_files_and_folders(tmp_path):
    dataset = load_mwp_dataset(write_lines(tmp_path / "own.jsonl", []))
    assert len(dataset["train"]) == 0
    assert dataset["train"].features == FEATURES
    (tmp_path / "empty").mkdir()
    with pytest.raises(DataError, match=r"\.jsonl, \.json, \.csv or \.tsv"):
        load_mwp_dataset(tmp_path / "empty")


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("math23k", {"split_scheme": "nine_fold"}, "nine_fold'.*public, train_test, five_fold, mwptoolkit"),
        ("math23k", {"fold": 1}, "'public'.*`fold`"),
        ("asdiv_a", {"fold": 5}, "folds 0 to 4.* 5"),
        ("asdiv_a", {"on_error": "ignore"}, "`on_error`.*'raise'.*'skip'.*'ignore'"),
        ("asdiv_a", {"drop_overlap": "both"}, "`drop_overlap`.*'test', 'train'.*'both'"),
        ("asdiv_a", {"validation_fraction": 1}, "`validation_fraction`.* 1"),
        ("math24k", {}, "math24k: .*ape210k"),
        ("nowhere.jsonl", {}, "nowhere.jsonl: .*ape210k"),
    ],
)
def test_impossible_options_are_refused(name, options, message):
    with pytest.raises(ValueError, match=message):
        load_mwp_dataset(name, FIXTURES, **options)
