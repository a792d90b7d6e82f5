import gzip
import json
import re
import shutil
from pathlib import Path

import numpy as np
import pytest

from hf_mwp.runtime.problems import MathWordProblem
from hf_mwp.solver.data import FEATURES, LOADERS, DataError, dataset_report, load_mwp_dataset, problem_from_row
from hf_mwp.solver.data.splits import hash_bucket
from tests.tiny import rebuilt


FIXTURES = Path(__file__).parents[2] / "fixtures"
FILES = {
    "math23k": ("train.jsonl", "valid.jsonl", "test.jsonl"),
    "ape210k": ("valid.jsonl", "test.jsonl"),
    "ape_clean": ("test.jsonl", "train.jsonl"),
    "hmwp": ("hmwp.jsonl",),
    "cm17k": ("valid.jsonl",),
    "cmath_distractor": ("cmath_distractor.jsonl",),
    "asdiv_a": ("asdiv_a.jsonl",),
    "gsm8k": ("train.jsonl", "test.jsonl"),
    "gsm8k_steps": ("train.jsonl", "test.jsonl"),
    "mawps": ("mawps.jsonl",),
    "mawps_single": ("mawps_single.jsonl",),
    "svamp": ("SVAMP.json",),
    "unbiasedmwp": ("unbiasedmwp_train.jsonl",),
}
FOLDERS = {"gsm8k_steps": "gsm8k", "mawps_single": "mawps"}


def folder_of(name: str) -> Path:
    return FIXTURES / FOLDERS.get(name, name)


def ids(dataset) -> dict[str, list[str]]:
    return {split: rows["id"] for split, rows in dataset.items()}


@pytest.fixture
def math23k(tmp_path) -> Path:
    """A copy of the five rows, to damage."""
    return Path(shutil.copytree(FIXTURES / "math23k", tmp_path / "math23k"))


def test_every_loader_has_a_fixture():
    assert set(LOADERS) == set(FILES)


@pytest.mark.parametrize("name", FILES)
def test_every_row_of_the_fixture_evaluates_to_its_answer(name):
    """All five rows, whatever their split, through the loader's own way of reading them."""
    count = 0
    for scheme in LOADERS[name].split_schemes:
        dataset = load_mwp_dataset(name, folder_of(name), split_scheme=scheme)
        assert list(dataset) == [split for split in ("train", "validation", "test") if split in dataset]
        for rows in dataset.values():
            assert rows.features == FEATURES
            for row in rows:
                problem = problem_from_row(row)
                assert problem.agrees() or (problem.equation is None and problem.answer_value is not None), row
                assert problem.numbers
                assert row["dataset"] == name and row["language"] == LOADERS[name].language
        count = max(count, sum(map(len, dataset.values())))
    held_in_lists = {"ape_clean": 4, "gsm8k_steps": 11, "mawps": 4}
    assert count == held_in_lists.get(name, 5)


@pytest.mark.parametrize("name", FILES)
def test_truncated_files_of_every_loader(name, tmp_path):
    for file in FILES[name]:
        folder = shutil.copytree(folder_of(name), tmp_path / file)
        text = (folder / file).read_text(encoding="utf-8")
        (folder / file).write_text(text[: len(text) * 3 // 4], encoding="utf-8")
        with pytest.raises(DataError) as caught:
            load_mwp_dataset(name, folder)
        assert caught.value.file.endswith(file) and caught.value.line >= 1
        _, report = load_mwp_dataset(name, folder, on_error="skip", return_report=True)
        assert report.damaged == 1 and file in report.damaged_examples[0]


@pytest.mark.parametrize("name", FILES)
def test_missing_files_of_every_loader(name, tmp_path):
    with pytest.raises(DataError, match="https://") as caught:
        load_mwp_dataset(name, tmp_path)
    assert str(tmp_path) in str(caught.value)
    with pytest.raises(DataError, match="nowhere: `data_dir`"):
        load_mwp_dataset(name, tmp_path / "nowhere")


@pytest.mark.parametrize("name", FILES)
def test_a_missing_field_of_every_loader(name, tmp_path):
    folder = shutil.copytree(folder_of(name), tmp_path / "folder")
    path = folder / FILES[name][0]
    if path.suffix == ".json":
        records = json.loads(path.read_text(encoding="utf-8"))
    else:
        records = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    needed = [field for field in records[-1] if _is_read(name, field)]
    for field in needed:
        broken = [*records[:-1], {key: value for key, value in records[-1].items() if key != field}]
        text = json.dumps(broken) if path.suffix == ".json" else "\n".join(map(json.dumps, broken))
        path.write_text(text, encoding="utf-8")
        with pytest.raises(DataError) as caught:
            load_mwp_dataset(name, folder)
        assert (caught.value.line, caught.value.field) == (len(records), field)


def _is_read(name: str, field: str) -> bool:
    ignored = {"segmented_text", "raw_text", "type", "grade", "solution_type", "single_fold", "Type", "original"}
    return field not in ignored


def test_math23k_schemes():
    load = lambda **kwargs: ids(load_mwp_dataset("math23k", FIXTURES / "math23k", **kwargs))  # noqa: E731
    assert load() == {"train": ["1", "2", "3"], "validation": ["4"], "test": ["5"]}
    assert load(split_scheme="train_test") == {"train": ["1", "2", "3", "4"], "test": ["5"]}
    assert load(split_scheme="five_fold", fold=1) == {"train": ["1", "2", "5"], "test": ["3"]}
    assert load(split_scheme="mwptoolkit") == {"train": ["2", "5"], "validation": ["1"], "test": ["3", "4"]}


def test_other_schemes():
    load = lambda name, **kwargs: ids(load_mwp_dataset(name, FIXTURES, **kwargs))  # noqa: E731
    assert load("hmwp") == {"train": ["11", "12", "14"], "validation": ["12"], "test": ["15"]}
    assert load("ape_clean") == {"train": ["105"], "test": ["101", "102", "103"]}
    assert load("ape_clean", split_scheme="listed") == {"train": ["105"], "test": ["101", "103"]}
    assert load("mawps", fold=3) == {"train": ["1", "2", "3"], "test": ["5"]}
    assert load("mawps_single", fold=2) == {"train": ["1", "2", "4", "5"], "test": ["3"]}
    assert load("unbiasedmwp") == {"train": ["unb-1", "unb-2", "unb-3"], "validation": ["unb-4"], "test": ["unb-5"]}
    assert load("cmath_distractor") == {"test": ["1", "2", "3", "4", "5"]}
    assert load("svamp") == {"test": ["chal-1", "chal-2", "chal-3", "chal-4", "chal-5"]}


def test_steps_that_make_up_no_equation_are_named(tmp_path):
    records = [
        {"question": "3 and 4?", "answer": "<<3+4=7>>7\n#### 7"},
        {"question": "5 and 4?", "answer": "In the head.\n#### 9"},
        {"question": "6 and 4?", "answer": "<<6+4=10>>10 <<6*4=24>>24\n#### 24"},
    ]
    (tmp_path / "gsm8k").mkdir()
    for split in ("train", "test"):
        write_lines(tmp_path / "gsm8k" / f"{split}.jsonl", records)
    dataset, report = load_mwp_dataset("gsm8k", tmp_path, return_report=True)
    assert dataset["train"]["equation"] == ["x=3+4"] and dataset["test"]["answer"] == ["7", "9", "24"]
    faults = {"no_steps": 1, "unused_step": 1}
    assert report.splits["train"].dropped == faults and report.splits["test"].kept_with == faults
    assert "line 3, id 3: " in report.splits["train"].examples["unused_step"][0]
    expressed, report = load_mwp_dataset("gsm8k", tmp_path, split_scheme="expressed", return_report=True)
    assert expressed["test"]["line"] == [1] and report.splits["train"].dropped == faults
    # As problems to add to those of another set.
    mine = write_lines(tmp_path / "mine.jsonl", [{"text": "8 and 9?", "equation": "x=8+9"}])
    _, report = load_mwp_dataset(mine, extra_train=["gsm8k:train"], return_report=True)
    assert report.extra["gsm8k:train"].dropped == faults | {"known": 1}
    write_lines(tmp_path / "gsm8k" / "train.jsonl", [{"question": "3 and 4?", "answer": "7"}])
    with pytest.raises(DataError, match="####"):
        load_mwp_dataset("gsm8k", tmp_path)


def test_gsm8k_steps(tmp_path):
    told, lines = "Al has 5 red and 6 blue pens.", "Al has <<5+6=11>>11 pens.\nHe keeps <<11-4=7>>7 pens.\n"
    records = [{"question": "3 and 4?", "answer": "<<3+4=7>>7\n#### 7"}]
    records += [
        {"question": f"{told} He loses 4. How many are left?", "answer": f"{lines}#### {end}"} for end in (7, 8)
    ]
    (tmp_path / "gsm8k").mkdir()
    for split in ("train", "test"):
        write_lines(tmp_path / "gsm8k" / f"{split}.jsonl", records)
    dataset, report = load_mwp_dataset("gsm8k_steps", tmp_path, return_report=True)
    asked = f"{told} He loses 4. How many pens does Al have?"
    rows = [(row["id"], row["text"], row["equation"], row["answer"], row["kind"]) for row in dataset["test"]]
    assert rows == [
        ("2", records[1]["question"], "x=5+6-4", "7", "2 operations"),
        ("2-S1", asked, "x=5+6", "11", "1 operation"),
        ("3", records[2]["question"], "", "8", ""),
        ("3-S1", asked, "x=5+6", "11", "1 operation"),
    ]
    assert dataset["test"]["context"] == ["test-2", "test-2", "test-3", "test-3"]
    # All questions of a context are in the same split.
    known = {context: split for split in dataset for context in dataset[split]["context"]}
    assert {*known} == {"train-2", "train-3", "test-2", "test-3"}
    assert report.splits["train"].dropped == {"open_steps": 1}


def test_gsm8k_steps_without_training_contexts(tmp_path):
    # The hash of the only context selects the validation split.
    line = next(line for line in range(1, 100) if hash_bucket(f"train-{line}") == 0)
    record = {
        "question": "Al has 5 red and 6 blue pens. How many?",
        "answer": "Al has <<5+6=11>>11 pens.\n<<11*1=11>>11\n#### 11",
    }
    write_lines(
        tmp_path / "train.jsonl", [{"question": "3 and 4?", "answer": "<<3+4=7>>7\n#### 7"}] * (line - 1) + [record]
    )
    dataset = load_mwp_dataset("gsm8k_steps", tmp_path)
    assert {*dataset} == {"validation"} and len(dataset["validation"]) == 2


def test_folds_are_disjoint_and_cover_everything():
    tests = []
    for fold in range(5):
        dataset = load_mwp_dataset("asdiv_a", FIXTURES, fold=fold)
        parts = ids(dataset)
        assert not set(parts["train"]) & set(parts["test"])
        assert len(parts["train"]) + len(parts["test"]) == 5
        assert set(dataset["test"]["fold"]) == {fold} and fold not in dataset["train"]["fold"]
        tests += parts["test"]
    assert sorted(tests) == [f"nluds-{number:04d}" for number in range(1, 6)]


def test_raw_strings_and_places():
    row = load_mwp_dataset("mawps", FIXTURES, fold=1)["test"][0]
    assert row == {
        "id": "2",
        "text": "For the play, the chairs have been put into 27 rows with 16 chairs in each row. How many chairs?",
        "equation": "X=(27.0*16.0)",
        "answer": "432.0",
        "language": "en",
        "context": "",
        "kind": "",
        "dataset": "mawps",
        "fold": 1,
        "file": "mawps.jsonl",
        "line": 2,
    }


def test_gzipped_files(math23k):
    for name in ("train.jsonl", "five_fold_ids.tsv"):
        data = (math23k / name).read_bytes()
        (math23k / f"{name}.gz").write_bytes(gzip.compress(data))
        (math23k / name).unlink()
    dataset = load_mwp_dataset("math23k", math23k, split_scheme="five_fold", fold=4)
    assert ids(dataset)["test"] == ["1"]
    assert dataset["test"]["file"] == ["train.jsonl.gz"]


@pytest.mark.parametrize(
    ("change", "field", "message"),
    [
        ({"ans": None}, "ans", ".*null"),
        ({"original_text": "   "}, "original_text|text", ".*empty"),
        ({"id": True}, "id", ".*string.* bool True"),
    ],
)
def test_damaged_record(math23k, change, field, message):
    path = math23k / "train.jsonl"
    lines = path.read_text(encoding="utf-8").splitlines()
    lines[1] = json.dumps(json.loads(lines[1]) | change)
    path.write_text("\n".join(lines), encoding="utf-8")
    with pytest.raises(DataError, match=rf"train\.jsonl, line 2, field '({field})': {message}"):
        load_mwp_dataset("math23k", math23k)
    dataset, report = load_mwp_dataset("math23k", math23k, on_error="skip", return_report=True)
    assert dataset["train"]["id"] == ["1", "3"]
    assert report.damaged == 1 and report.damaged_examples[0].startswith("train.jsonl, line 2")
    assert "1 damaged" in str(report) and report.data_dir == math23k.name
    assert str(math23k.parent) not in json.dumps(report.to_dict())


def write_lines(path: Path, records: list[dict]) -> Path:
    path.write_text("".join(json.dumps(record) + "\n" for record in records), encoding="utf-8")
    return path


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


def test_faults_leave_training_problems_out(tmp_path):
    path = write_lines(tmp_path / "mine.jsonl", [record for record, _ in FAULTS])
    dataset, report = load_mwp_dataset(path, return_report=True)
    assert dataset["train"]["line"] == [line for line, (_, fault) in enumerate(FAULTS, 1) if fault is None]
    split = report.splits["train"]
    expected = [fault for _, fault in FAULTS if fault is not None]
    assert split.dropped == {fault: expected.count(fault) for fault in expected}
    assert (split.read, split.kept, split.kept_with) == (len(FAULTS), 2, {})
    (example,) = split.examples["wrong_value"]
    assert re.search(r"mine\.jsonl, line 11.*x=3\*4.*\b12\b.*\b7\b", example)
    kept = load_mwp_dataset(path, keep_unusable=True)
    assert len(kept["train"]) == len(FAULTS)


def test_problems_to_evaluate_on_are_kept_if_they_have_one_answer(tmp_path):
    path = write_lines(tmp_path / "test.jsonl", [record for record, _ in FAULTS])
    dataset, report = load_mwp_dataset(path, return_report=True)
    assert list(dataset) == ["test"]
    split = report.splits["test"]
    assert split.dropped == {"several_answers": 1, "no_answer": 1}
    assert split.kept == len(dataset["test"]) == len(FAULTS) - 2
    assert split.kept_with == {
        "no_equation": 1,
        "system_of_equations": 1,
        "several_unknowns": 1,
        "unsolved_equation": 2,
        "unreadable_equation": 2,
        "not_computable": 1,
        "wrong_value": 1,
        "no_numbers": 1,
    }


@pytest.fixture
def overlapping(tmp_path) -> Path:
    row = lambda text: {"text": text, "equation": "x=3", "answer": "3"}  # noqa: E731
    write_lines(tmp_path / "train.jsonl", [row("有3个"), row("买3个"), row("买３个 "), row("卖3个")])
    write_lines(tmp_path / "dev.jsonl", [row("卖 3 个"), row("送3个")])
    # A training problem that is left out, for its equation is wrong, counts all the same.
    with (tmp_path / "train.jsonl").open("a", encoding="utf-8") as file:
        file.write(json.dumps({"text": "吃9个", "equation": "x=9", "answer": "8"}) + "\n")
    write_lines(tmp_path / "test.jsonl", [row("买3个"), row("换3个"), row("吃3个"), row("送3个")])
    return tmp_path


def test_overlap_is_counted(overlapping):
    dataset, report = load_mwp_dataset(overlapping, return_report=True)
    assert {split: counts.overlap for split, counts in report.splits.items()} == {
        "train": None,
        "validation": 1,
        "test": 2,
    }
    assert [len(rows) for rows in dataset.values()] == [4, 2, 4]
    assert re.search(r"\b2 .*masked text", str(report))


@pytest.mark.parametrize("side", ["test", True])
def test_overlap_is_dropped_from_test(overlapping, side):
    dataset, report = load_mwp_dataset(overlapping, drop_overlap=side, return_report=True)
    assert dataset["test"]["text"] == ["换3个", "送3个"]
    assert [len(rows) for rows in dataset.values()] == [4, 2, 2]
    assert report.drop_overlap == "test"
    assert report.splits["test"].overlap == 2 and report.splits["test"].dropped == {"overlap": 2}
    assert re.search(r"\b2 .*masked text.*left out", str(report))


def test_overlap_is_seen_through_punctuation_and_numerals(tmp_path):
    for split, text in (("train", "小明有3个苹果，吃了２个．"), ("test", "小明有三个苹果，吃了两个 ？")):
        write_lines(tmp_path / f"{split}.jsonl", [{"text": text, "equation": "x=3-2", "answer": "1"}])
    assert load_mwp_dataset(tmp_path, return_report=True)[1].splits["test"].overlap == 1
    more = write_lines(tmp_path / "more.jsonl", [{"text": "小明有7个苹果，吃了五个", "equation": "x=7"}])
    _, report = load_mwp_dataset(tmp_path, extra_train=[more], return_report=True)
    assert report.extra[str(more)].dropped == {"excluded": 1}


def test_overlap_is_dropped_from_train(overlapping):
    dataset, report = load_mwp_dataset(overlapping, drop_overlap="train", return_report=True)
    assert dataset["train"]["text"] == ["有3个"]
    assert [len(rows) for rows in dataset.values()] == [1, 2, 4]
    assert report.splits["train"].dropped == {"overlap": 3, "wrong_value": 1}
    assert re.search("training problems.*left out", str(report))


def test_problems_are_added_to_the_training_split(tmp_path):
    (tmp_path / "mine").mkdir()
    own = {"train": ["有3个", "拿7个"], "valid": ["换3个"], "test": ["送3个"]}
    for split, texts in own.items():
        write_lines(tmp_path / "mine" / f"{split}.jsonl", [{"text": text, "equation": "x=2+1"} for text in texts])
    more = [
        {"text": "送9个", "equation": "x=9"},  # of the test split, with another number
        {"text": "换1个", "equation": "x=1"},  # of the validation split
        {"text": "拿2个", "equation": "x=2"},  # of the training split
        {"text": "买4个", "equation": "x=4+1"},
        {"text": "买5个", "equation": "x=5"},  # added already
        {"text": "卖5个", "equation": "x=5", "answer": "6"},
    ]
    path = write_lines(tmp_path / "more.jsonl", more)
    dataset, report = load_mwp_dataset(tmp_path / "mine", extra_train=[path], return_report=True)
    assert dataset["train"]["text"] == ["有3个", "拿7个", "买4个"]
    assert [len(dataset[part]) for part in ("validation", "test")] == [1, 1]
    counts = report.extra[str(path)]
    assert (counts.read, counts.kept, counts.with_constants) == (6, 1, 1)
    assert counts.dropped == {"known": 4, "wrong_value": 1}
    assert re.search(r"added to train(?s:.*)\b4 left out", str(report))
    assert dataset_report(dataset).extra == report.extra


def test_what_is_excluded_is_not_added(tmp_path):
    path = write_lines(tmp_path / "mine.jsonl", [{"text": "有3个", "equation": "x=3"}])
    more = [
        {"text": "买4个", "equation": "x=4"},
        {"text": "卖5个", "equation": "x=5"},
        {"text": "6+7=?", "equation": "x=6+7"},
    ]
    more = write_lines(tmp_path / "more.jsonl", more)
    other = write_lines(tmp_path / "other.jsonl", [{"text": "卖 8个"}, {"text": "1+1=?"}])
    dataset, report = load_mwp_dataset(path, extra_train=more, extra_exclude=[other], return_report=True)
    assert dataset["train"]["text"] == ["有3个", "买4个"]
    assert report.extra[str(more)].dropped == {"excluded": 2}
    assert re.search(r"\b2 left out", str(report))


def test_added_problems_obey_the_options(tmp_path):
    rows = [{"text": f"第{n}个和{n}", "equation": "x=1"} for n in range(3)]
    path = write_lines(tmp_path / "mine.jsonl", rows)
    more = write_lines(tmp_path / "more.jsonl", [{"text": "3/4+5=?", "equation": "x=3/4+5"}, {"text": "没有方程1"}])
    with more.open("a", encoding="utf-8") as file:
        file.write('{"text": "cut')
    with pytest.raises(DataError, match="more.jsonl, line 3"):
        load_mwp_dataset(path, extra_train=more)
    dataset, report = load_mwp_dataset(path, extra_train=str(more), on_error="skip", return_report=True)
    # A text without Chinese characters, whose language is not said, is in that of the data set.
    assert dataset["train"]["text"][-1] == "3/4+5=?" and dataset["train"]["language"][-1] == "zh"
    assert report.damaged == 1 and report.extra[str(more)].dropped == {"no_equation": 1}
    kept = load_mwp_dataset(path, extra_train=[more], on_error="skip", keep_unusable=True)
    assert kept["train"]["text"][-1] == "没有方程1"


@pytest.mark.parametrize(
    ("name", "extra"),
    [("math23k", "hmwp"), ("math23k", "ape210k:validation"), ("asdiv_a", "mawps_single:all")],
)
def test_parts_of_other_data_sets_are_added(name, extra):
    plain = load_mwp_dataset(name, FIXTURES)
    dataset, report = load_mwp_dataset(name, FIXTURES, extra_train=[extra], return_report=True)
    assert len(dataset["train"]) - len(plain["train"]) == report.extra[extra].kept > 0
    assert dataset["train"]["text"][: len(plain["train"])] == plain["train"]["text"]
    assert dataset["test"]["text"] == plain["test"]["text"]


@pytest.mark.parametrize(
    ("name", "extra", "fault"),
    [
        ("math23k", "ape210k:dev", "'dev'.*train, validation, test, all"),
        ("math23k", "mawps", r"mawps.jsonl, line 2, .*language.: .* en"),
        ("math23k", "nowhere.jsonl", "nowhere.jsonl: .*ape210k"),
        ("math23k", "cm17k", "cm17k.* train .*validation"),
        ("cm17k", "math23k", "math23k: .*training split"),
    ],
)
def test_what_cannot_be_added_is_named(name, extra, fault):
    with pytest.raises(DataError, match=fault):
        load_mwp_dataset(name, FIXTURES, extra_train=[extra])


def test_reversed_problems_are_added(tmp_path):
    (tmp_path / "mine").mkdir()
    own = {
        "train": [("甲有6个，乙有4个，甲比乙多几个？", "x=6-4", "2"), ("有3个", "x=3", "3")],
        # What asking for 6 would be.
        "test": [("乙有5个，甲比乙多3个，甲有多少个？", "x=5+3", "8")],
    }
    for split, problems in own.items():
        rows = [dict(zip(("text", "equation", "answer"), each, strict=True)) for each in problems]
        write_lines(tmp_path / "mine" / f"{split}.jsonl", rows)
    added = {"text": "买2支笔要8元，一支要多少元？", "equation": "x=8/2", "answer": "4"}
    more = write_lines(tmp_path / "more.jsonl", [added])
    dataset, report = load_mwp_dataset(tmp_path / "mine", extra_train=[more], augment_reverse=True, return_report=True)
    rows = dataset["train"].to_list()
    assert [(row["id"], row["text"], row["equation"], row["answer"]) for row in rows[3:]] == [
        ("1-N1", "甲有6个，甲比乙多2个，乙有多少个？", "x=6-2", "4"),
        ("1-N1", "一支要4元，买2支笔要多少元？", "x=4*2", "8"),
        ("1-N0", "一支要4元，买多少支笔要8元？", "x=8/4", "2"),
    ]
    assert [row["file"] for row in rows[3:]] == ["train.jsonl", "more.jsonl", "more.jsonl"]
    assert report.extra["reversed"].dropped == {"known": 1}
    assert len(dataset["test"]) == 1
    assert re.search("reversed: 3 of 4", str(report))


def test_held_out_problems_are_reversed():
    plain = load_mwp_dataset("math23k", FIXTURES)
    dataset, report = load_mwp_dataset("math23k", FIXTURES, reverse_held_out=True, return_report=True)
    assert dataset["train"].to_list() == plain["train"].to_list()
    rows = [(row["text"], row["equation"], row["answer"]) for row in dataset["validation"]]
    assert rows == [
        ("平均分成4段，每段长1.75米，一根绳子长多少米？", "x=1.75*4", "7"),
        ("一根绳子长7米，每段长1.75米，平均分成多少段？", "x=7/1.75", "4"),
    ]
    assert report.splits["validation"].read == 2
    assert re.fullmatch("public, .*reversed", report.scheme)


@pytest.mark.parametrize("option", ["augment_reverse", "augment_distractors"])
def test_without_problems_none_can_be_made(option):
    with pytest.raises(DataError, match="cm17k: "):
        load_mwp_dataset("cm17k", FIXTURES, **{option: True})


def test_english_problems_get_distractors_too():
    dataset, report = load_mwp_dataset("asdiv_a", augment_distractors=True, return_report=True)
    added = [row for row in dataset["train"] if "-D" in row["id"]]
    assert report.extra["distractors"].kept == len(added) > 100 and {row["language"] for row in added} == {"en"}


def test_problems_with_distractors_are_added():
    plain = load_mwp_dataset("math23k", FIXTURES, extra_train=["unbiasedmwp"])
    load = lambda: load_mwp_dataset(  # noqa: E731
        "math23k", FIXTURES, extra_train=["unbiasedmwp"], augment_distractors=True, return_report=True
    )
    dataset, report = load()
    assert dataset["train"].to_list() == load()[0]["train"].to_list()
    rows = dataset["train"].to_list()
    count = len(plain["train"])
    assert rows[:count] == plain["train"].to_list()
    assert report.extra["distractors"].kept == len(rows) - count > 0
    originals = {row["id"]: problem_from_row(row) for row in rows[:count]}
    for row in rows[count:]:
        name, _, added = row["id"].rpartition("-D")
        new, old = problem_from_row(row), originals[name]
        assert len(new.numbers) == len(old.numbers) + int(added)
        assert new.agrees() and new.equation == old.equation and not new.context


def test_contexts_and_kinds():
    dataset = load_mwp_dataset("unbiasedmwp", FIXTURES)
    assert dataset["train"]["kind"] == ["0 operations", "1 operation", "2 operations"]
    assert dataset["train"]["context"] == ["c1"] * 3
    dataset = load_mwp_dataset("cmath_distractor", FIXTURES)
    assert dataset["test"]["kind"][:3] == ["0 distractors", "1 distractor", "2 distractors"]


def test_questions_without_a_context_are_left_out(tmp_path):
    text = (FIXTURES / "unbiasedmwp" / "unbiasedmwp_train.jsonl").read_text(encoding="utf-8")
    (tmp_path / "unbiasedmwp").mkdir()
    (tmp_path / "unbiasedmwp" / "unbiasedmwp_train.jsonl").write_text(text.replace('"c3"', '""'), encoding="utf-8")
    dataset, report = load_mwp_dataset("unbiasedmwp", tmp_path, return_report=True)
    assert ids(dataset) == {"train": ["unb-1", "unb-2", "unb-3"], "test": ["unb-5"]}
    assert report.splits["train"].dropped == {"no_context": 1}
    (tmp_path / "math23k").symlink_to(FIXTURES / "math23k")
    _, report = load_mwp_dataset("math23k", tmp_path, extra_train=["unbiasedmwp"], return_report=True)
    assert report.extra["unbiasedmwp"].dropped == {"no_context": 1}


@pytest.mark.parametrize("held_out", ["split", "exclude"])
def test_contexts_that_begin_a_held_out_problem_are_not_added(held_out, tmp_path):
    """Other numbers and punctuation make no difference, but other words do."""
    (tmp_path / "unbiasedmwp").symlink_to(FIXTURES / "unbiasedmwp")
    (tmp_path / "mine").mkdir()
    write_lines(tmp_path / "mine" / "train.jsonl", [{"text": "2加3是几？", "equation": "2+3", "answer": "5"}])
    path = tmp_path / ("mine/test.jsonl" if held_out == "split" else "others.jsonl")
    options = {"extra_exclude": [path]} if held_out == "exclude" else {}

    def load(text):
        write_lines(path, [{"text": text, "answer": "1"}])
        dataset, report = load_mwp_dataset(
            tmp_path / "mine", extra_train=["unbiasedmwp"], return_report=True, **options
        )
        return len(dataset["train"]) - 1, report.extra["unbiasedmwp"].dropped

    assert load("小明有20元．买了4支笔，每支3元，小红有几元？") == (0, {"held_out_context": 3})
    assert load("小明有20元．买了4支花，每支3元，小红有几元？") == (3, {})


def test_english_problems_are_reversed(tmp_path):
    row = {"text": "Al has 4 pens and Bo has 5 pens. How many pens do they have?", "equation": "4+5", "answer": "9"}
    rows = load_mwp_dataset(write_lines(tmp_path / "mine.jsonl", [row]), augment_reverse=True)["train"].to_list()
    assert [(row["id"], row["equation"], row["answer"]) for row in rows[1:]] == [
        ("1-N0", "x=9-5", "4"),
        ("1-N1", "x=9-4", "5"),
    ]


def test_validation_fraction(tmp_path):
    rows = [{"text": f"第{i}个和{i}", "equation": f"x={i}+{i}", "answer": str(2 * i)} for i in range(50)]
    path = write_lines(tmp_path / "mine.jsonl", rows)
    dataset, report = load_mwp_dataset(path, validation_fraction=0.2, return_report=True)
    parts = ids(dataset)
    assert [len(part) for part in parts.values()] == [40, 10]
    assert not set(parts["train"]) & set(parts["validation"])
    assert parts["train"] == sorted(parts["train"], key=int)
    assert parts == ids(load_mwp_dataset(path, validation_fraction=0.2))
    assert report.validation_fraction == 0.2
    assert re.fullmatch("files, 0.2 .*validation", report.scheme)
    # At least one problem is held out, and never all.
    small = write_lines(tmp_path / "small.jsonl", rows[:3])
    for fraction, sizes in [(0.1, [2, 1]), (0.9, [1, 2])]:
        assert [len(part) for part in load_mwp_dataset(small, validation_fraction=fraction).values()] == sizes
    # A data set with a validation split keeps that one.
    dataset, report = load_mwp_dataset("math23k", FIXTURES, validation_fraction=0.5, return_report=True)
    assert len(dataset["train"]) == 3 and report.validation_fraction == 0


def test_report_travels_with_the_data(tmp_path):
    from datasets import DatasetDict, load_from_disk

    dataset, report = load_mwp_dataset("math23k", FIXTURES, split_scheme="five_fold", fold=2, return_report=True)
    assert dataset_report(dataset) == report
    mapped = dataset["test"].map(lambda row: {"length": len(row["text"])}).select(range(1))
    assert dataset_report(mapped) == report
    dataset.save_to_disk(tmp_path / "saved")
    assert dataset_report(load_from_disk(tmp_path / "saved")) == report
    assert (report.split_scheme, report.fold) == ("five_fold", 2)
    assert report.scheme == "five_fold, fold 2"
    assert json.loads(json.dumps(report.to_dict()))["splits"]["test"]["kept"] == 1
    with pytest.raises(DataError, match="load_mwp_dataset"):
        dataset_report(DatasetDict({"train": mapped.remove_columns("length").from_list([{"text": "3"}])}))


def test_report_as_text():
    _, report = load_mwp_dataset("math23k", FIXTURES, return_report=True)
    expected = ["math23k.*public", "train: 3 of 3", " 3 use", "validation: 1 of 1", " 0 .*masked text"]
    expected += ["test: 1 of 1", " 0 .*masked text"]
    for line, pattern in zip(str(report).splitlines(), expected, strict=True):
        assert re.search(pattern, line)


def test_report_shows_the_first_problem_of_each_fault(tmp_path):
    rows = [{"text": f"{i} and 5?", "equation": f"x={i}+5", "answer": i + 5} for i in range(9)]
    rows[6]["equation"], rows[7]["answer"], rows[8]["answer"] = "x=6+(", 99, 98
    path = write_lines(tmp_path / "mine.jsonl", rows)
    _, report = load_mwp_dataset(path, validation_fraction=0, return_report=True)
    faults = str(report).splitlines()[2:]
    expected = ["1 left out.*parsed", r"line 7, .*x=6\+\(", "2 left out.*value", "line 8, .* 12, .*99"]
    for line, pattern in zip(faults, expected, strict=True):
        assert re.search(pattern, line)


def test_own_files(tmp_path):
    (tmp_path / "dev.csv").write_text("Question,Equation,Answer\nTwo and 3?,2+3,5\n", encoding="utf-8")
    records = [{"body": "有3个。", "question": "共几个？", "formula": "3", "ans": 3, "language": "zh", "other": [1]}]
    (tmp_path / "train.json.gz").write_bytes(gzip.compress(json.dumps(records).encode()))
    dataset = load_mwp_dataset(tmp_path)
    assert list(dataset) == ["train", "validation"]
    assert dataset["train"][0]["text"] == "有3个。 共几个？"
    row = dataset["validation"][0]
    assert (row["language"], row["dataset"], row["line"], row["id"]) == ("en", "dev", 2, "2")
    assert problem_from_row(row).expression.to_infix() == "N0+N1"
    assert ids(load_mwp_dataset("dev.csv", data_dir=tmp_path)) == {"validation": ["2"]}


def test_two_files_of_one_split(tmp_path):
    for name in ("train.jsonl", "valid.tsv", "dev.csv"):
        (tmp_path / name).write_text("{}")
    with pytest.raises(DataError, match="dev.csv.*valid.tsv|valid.tsv.*dev.csv"):
        load_mwp_dataset(tmp_path)


def test_rows_with_numbers():
    problem = problem_from_row({"text": "3和0.5？", "id": 0, "answer": np.float64(3.5), "equation": np.int64(3)})
    assert (problem.id, problem.answer, problem.equation) == ("0", "3.5", "3")


def test_nan_is_a_missing_value(tmp_path):
    row = dict.fromkeys(("id", "answer", "equation", "language", "context", "kind"), float("nan"))
    assert problem_from_row({"text": "3和0.5？", **row}) == MathWordProblem("3和0.5？")
    with pytest.raises(TypeError, match="nan"):
        problem_from_row({"text": float("nan")})
    path = write_lines(tmp_path / "mine.jsonl", [{"text": "3 and 4?", "equation": "3+4", "answer": float("nan")}])
    (kept,) = load_mwp_dataset(path)["train"]
    assert kept["answer"] == ""


def test_rows_without_words_have_the_language_of_their_source(tmp_path):
    sums, chinese = [{"text": "36cm÷4=?"}, {"text": "3+4=?", "language": "en"}], [{"text": "买3个"}]

    def languages(train, test):
        write_lines(tmp_path / "train.jsonl", train)
        write_lines(tmp_path / "test.jsonl", test)
        dataset = load_mwp_dataset(tmp_path, keep_unusable=True)
        return dataset["train"]["language"], dataset["test"]["language"]

    assert languages(sums + chinese, sums) == (["zh", "en", "zh"], ["zh", "en"])
    assert languages(sums, sums) == (["en", "en"], ["en", "en"])
    path = write_lines(tmp_path / "mine.jsonl", sums[:1] + chinese)
    assert load_mwp_dataset(path, keep_unusable=True)["train"]["language"] == ["zh", "zh"]


@pytest.mark.parametrize(
    ("record", "message"),
    [
        ({"equation": "3"}, "no field has the usual name of a text.*text=FIELD"),
        ({"text": ""}, "field 'text': .*empty"),
        ({"text": "3" * 100_001}, "field 'text': .*100,000 characters"),
        ({"text": "3", "language": "fr"}, "field 'language': .*'zh' or 'en'.*'fr'"),
        ({"text": "3", "answer": {"a": 1}}, "field 'answer': .*string.* dict"),
    ],
)
def test_damaged_records_of_own_files(tmp_path, record, message):
    path = write_lines(tmp_path / "mine.jsonl", [{"text": "3"}, record])
    with pytest.raises(DataError, match=f"line 2[,:] {message}"):
        load_mwp_dataset(path)


def test_empty_files_and_folders(tmp_path):
    path = write_lines(tmp_path / "mine.jsonl", [])
    dataset = load_mwp_dataset(path)
    assert len(dataset["train"]) == 0 and dataset["train"].features == FEATURES
    (tmp_path / "empty").mkdir()
    with pytest.raises(DataError, match=r"\.jsonl, \.json, \.csv or \.tsv"):
        load_mwp_dataset(tmp_path / "empty")


def test_texts_of_every_kind_load(tmp_path):
    texts = ["😀有3个😀", "苹果" * 5000, "、".join(map(str, range(200))), "有３个和４．５个", "[NUM]有3个", "\u0000 3"]
    path = write_lines(tmp_path / "mine.jsonl", [{"text": text, "equation": "x=3", "answer": "3"} for text in texts])
    rows = load_mwp_dataset(path, keep_unusable=True)["train"]
    assert rows["text"] == [text.strip() for text in texts]
    read = [problem_from_row(row) for row in rows]
    assert [problem.text for problem in read] == [*rows["text"][:-1], " 3"]
    assert [rebuilt(problem.masked) for problem in read] == [problem.text for problem in read]


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        (
            "math23k",
            {"split_scheme": "nine_fold"},
            "'nine_fold'.*public, train_test, five_fold, mwptoolkit, stratified",
        ),
        ("math23k", {"fold": 1}, "'public'.*`fold`"),
        ("asdiv_a", {"fold": 5}, "folds 0 to 4.* 5"),
        ("asdiv_a", {"on_error": "ignore"}, "`on_error`.*'raise'.*'skip'.*'ignore'"),
        ("asdiv_a", {"drop_overlap": "both"}, "`drop_overlap`.*'test', 'train'.*'both'"),
        ("asdiv_a", {"validation_fraction": 1}, "`validation_fraction`.* 1"),
        ("math24k", {}, "math24k: .*ape210k"),
        ("nowhere.jsonl", {}, "nowhere.jsonl: .*ape210k"),
    ],
)
def test_impossible_options(name, options, message):
    with pytest.raises(ValueError, match=message):
        load_mwp_dataset(name, FIXTURES, **options)


def test_default_folder_is_told_where_there_is_none():
    with pytest.raises(DataError, match="`data_dir`.*hmwp.jsonl.* https://"):
        load_mwp_dataset("hmwp")
