"""Loaders of the datasets with a name, on five rows of each."""

import json
import shutil
from pathlib import Path

import pytest

from hf_mwp.solver.data import FEATURES, LOADERS, DataError, load_mwp_dataset, problem_from_row
from hf_mwp.solver.data.splits import hash_bucket
from tests.slow_parameters import slow_after, slow_except
from tests.solver.data.problem_files import FIXTURES, ids_of, load, write_lines


# The files of each loader, and its folder if that has another name.
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
NUM_ROWS = {"ape_clean": 4, "gsm8k_steps": 11, "mawps": 4}
UNREAD_FIELDS = {"segmented_text", "raw_text", "type", "grade", "solution_type", "single_fold", "Type", "original"}


def folder_of(name: str) -> Path:
    return FIXTURES / FOLDERS.get(name, name)


@pytest.mark.parametrize("name", slow_except(LOADERS, *(LOADERS.keys() - {"ape_clean", "asdiv_a", "gsm8k_steps"})))
def test_every_row_evaluates_to_its_answer(name):
    sizes = []
    for scheme in LOADERS[name].split_schemes:
        dataset = load_mwp_dataset(name, folder_of(name), split_scheme=scheme)
        assert list(dataset) == [split for split in ("train", "validation", "test") if split in dataset]
        for rows in dataset.values():
            assert rows.features == FEATURES
            for row in rows:
                problem = problem_from_row(row)
                assert problem.agrees() or (problem.equation is None and problem.answer_value is not None), row
                assert problem.numbers
                assert row["dataset"] == name
                assert row["language"] == LOADERS[name].language
        sizes.append(sum(map(len, dataset.values())))
    assert max(sizes) == NUM_ROWS.get(name, 5)


@pytest.mark.parametrize("name", slow_except(LOADERS, "asdiv_a", "cm17k", "cmath_distractor"))
def test_truncated_file_is_named_or_counted(name, tmp_path):
    for file in FILES[name]:
        folder = shutil.copytree(folder_of(name), tmp_path / file)
        text = (folder / file).read_text(encoding="utf-8")
        (folder / file).write_text(text[: len(text) * 3 // 4], encoding="utf-8")
        with pytest.raises(DataError) as caught:
            load_mwp_dataset(name, folder)
        assert caught.value.file.endswith(file)
        assert caught.value.line >= 1
        _, report = load(name, folder, on_error="skip")
        assert report.damaged == 1
        assert file in report.damaged_examples[0]


@pytest.mark.parametrize("name", LOADERS)
def test_missing_files_are_named_with_their_origin(name, tmp_path):
    with pytest.raises(DataError, match="https://") as caught:
        load_mwp_dataset(name, tmp_path)
    assert str(tmp_path) in str(caught.value)


def test_missing_folder_is_named(tmp_path):
    with pytest.raises(DataError, match="nowhere: `data_dir`"):
        load_mwp_dataset("svamp", tmp_path / "nowhere")
    with pytest.raises(DataError, match="`data_dir`.*hmwp.jsonl.* https://"):
        load_mwp_dataset("hmwp")


@pytest.mark.parametrize("name", LOADERS)
def test_missing_field_is_named(name, tmp_path):
    folder = shutil.copytree(folder_of(name), tmp_path / "folder")
    path = folder / FILES[name][0]
    text = path.read_text(encoding="utf-8")
    is_array = path.suffix == ".json"
    records = json.loads(text) if is_array else [json.loads(line) for line in text.splitlines()]
    complete = dict(records[-1])
    for field in complete.keys() - UNREAD_FIELDS:
        records[-1] = {key: value for key, value in complete.items() if key != field}
        path.write_text(json.dumps(records) if is_array else "\n".join(map(json.dumps, records)), encoding="utf-8")
        with pytest.raises(DataError) as caught:
            load_mwp_dataset(name, folder)
        assert caught.value.line == len(records)
        assert caught.value.field == field


@pytest.mark.parametrize(
    ("name", "options", "expected"),
    slow_after(
        7,
        [
            ("math23k", {}, {"train": ["1", "2", "3"], "validation": ["4"], "test": ["5"]}),
            ("math23k", {"split_scheme": "five_fold", "fold": 1}, {"train": ["1", "2", "5"], "test": ["3"]}),
            ("ape_clean", {}, {"train": ["105"], "test": ["101", "102", "103"]}),
            ("ape_clean", {"split_scheme": "listed"}, {"train": ["105"], "test": ["101", "103"]}),
            (
                "asdiv_a",
                {"fold": 2},
                {"train": ["nluds-0001", "nluds-0002", "nluds-0004", "nluds-0005"], "test": ["nluds-0003"]},
            ),
            ("mawps", {"fold": 3}, {"train": ["1", "2", "3"], "test": ["5"]}),
            ("svamp", {}, {"test": ["chal-1", "chal-2", "chal-3", "chal-4", "chal-5"]}),
            ("math23k", {"split_scheme": "train_test"}, {"train": ["1", "2", "3", "4"], "test": ["5"]}),
            (
                "math23k",
                {"split_scheme": "mwptoolkit"},
                {"train": ["2", "5"], "validation": ["1"], "test": ["3", "4"]},
            ),
            ("hmwp", {}, {"train": ["11", "12", "14"], "validation": ["12"], "test": ["15"]}),
            ("mawps_single", {"fold": 2}, {"train": ["1", "2", "4", "5"], "test": ["3"]}),
            ("unbiasedmwp", {}, {"train": ["unb-1", "unb-2", "unb-3"], "validation": ["unb-4"], "test": ["unb-5"]}),
            ("cmath_distractor", {}, {"test": ["1", "2", "3", "4", "5"]}),
        ],
    ),
)
def test_split_schemes(name, options, expected):
    assert ids_of(load_mwp_dataset(name, FIXTURES, **options)) == expected


def test_row_has_the_strings_of_the_source_and_its_place():
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


def test_contexts_and_kinds():
    train = load_mwp_dataset("unbiasedmwp", FIXTURES)["train"]
    assert train["kind"] == ["0 operations", "1 operation", "2 operations"]
    assert train["context"] == ["c1"] * 3
    test = load_mwp_dataset("cmath_distractor", FIXTURES)["test"]
    assert test["kind"][:3] == ["0 distractors", "1 distractor", "2 distractors"]


def test_skipped_record_is_reported_without_the_path_of_its_file(tmp_path):
    folder = Path(shutil.copytree(FIXTURES / "math23k", tmp_path / "math23k"))
    path = folder / "train.jsonl"
    lines = path.read_text(encoding="utf-8").splitlines()
    lines[1] = json.dumps(json.loads(lines[1]) | {"ans": None})
    path.write_text("\n".join(lines), encoding="utf-8")
    with pytest.raises(DataError, match=r"train\.jsonl, line 2, field 'ans'"):
        load_mwp_dataset("math23k", folder)
    dataset, report = load("math23k", folder, on_error="skip")
    assert dataset["train"]["id"] == ["1", "3"]
    assert report.damaged == 1
    assert report.damaged_examples[0].startswith("train.jsonl, line 2")
    assert "1 damaged" in str(report)
    assert report.data_dir == "math23k"
    assert str(tmp_path) not in json.dumps(report.to_dict())


def write_gsm8k(folder: Path, records: list[dict]) -> Path:
    """Write the same training and test files, and return the folder."""
    for split in ("train", "test"):
        write_lines(folder / f"{split}.jsonl", records)
    return folder


def test_gsm8k_steps_without_an_equation_are_named(tmp_path):
    records = [
        {"question": "3 and 4?", "answer": "<<3+4=7>>7\n#### 7"},
        {"question": "5 and 4?", "answer": "In the head.\n#### 9"},
        {"question": "6 and 4?", "answer": "<<6+4=10>>10 <<6*4=24>>24\n#### 24"},
    ]
    folder = write_gsm8k(tmp_path / "gsm8k", records)
    dataset, report = load("gsm8k", folder)
    assert dataset["train"]["equation"] == ["x=3+4"]
    assert dataset["test"]["answer"] == ["7", "9", "24"]
    faults = {"no_steps": 1, "unused_step": 1}
    assert report.splits["train"].dropped == faults
    assert report.splits["test"].kept_with == faults
    assert "line 3, id 3: " in report.splits["train"].examples["unused_step"][0]

    dataset, report = load("gsm8k", folder, split_scheme="expressed")
    assert dataset["test"]["line"] == [1]
    assert report.splits["train"].dropped == faults

    write_lines(folder / "train.jsonl", [{"question": "3 and 4?", "answer": "7"}])
    with pytest.raises(DataError, match="####"):
        load_mwp_dataset("gsm8k", folder)


def test_gsm8k_steps_become_problems(tmp_path):
    context = "Al has 5 red and 6 blue pens."
    steps = "Al has <<5+6=11>>11 pens.\nHe keeps <<11-4=7>>7 pens.\n"
    question = f"{context} He loses 4. How many are left?"
    records = [
        {"question": "3 and 4?", "answer": "<<3+4=7>>7\n#### 7"},
        {"question": question, "answer": f"{steps}#### 7"},
        {"question": question, "answer": f"{steps}#### 8"},
    ]
    dataset, report = load("gsm8k_steps", write_gsm8k(tmp_path / "gsm8k", records))
    first_step = f"{context} He loses 4. How many pens does Al have?"
    rows = [(row["id"], row["text"], row["equation"], row["answer"], row["kind"]) for row in dataset["test"]]
    assert rows == [
        ("2", question, "x=5+6-4", "7", "2 operations"),
        ("2-S1", first_step, "x=5+6", "11", "1 operation"),
        ("3", question, "", "8", ""),
        ("3-S1", first_step, "x=5+6", "11", "1 operation"),
    ]
    assert dataset["test"]["context"] == ["test-2", "test-2", "test-3", "test-3"]
    # All questions of a context are in the same split.
    contexts = []
    for rows in dataset.values():
        contexts += set(rows["context"])
    assert sorted(contexts) == ["test-2", "test-3", "train-2", "train-3"]
    assert report.splits["train"].dropped == {"open_steps": 1}


def test_gsm8k_steps_without_training_contexts(tmp_path):
    # The hash of the only context selects the validation split.
    line = next(line for line in range(1, 100) if hash_bucket(f"train-{line}") == 0)
    records = [{"question": "3 and 4?", "answer": "<<3+4=7>>7\n#### 7"}] * line
    records[-1] = {
        "question": "Al has 5 red and 6 blue pens. How many?",
        "answer": "Al has <<5+6=11>>11 pens.\n<<11*1=11>>11\n#### 11",
    }
    write_lines(tmp_path / "train.jsonl", records)
    dataset = load_mwp_dataset("gsm8k_steps", tmp_path)
    assert {*dataset} == {"validation"}
    assert len(dataset["validation"]) == 2


def test_unbiasedmwp_questions_without_a_context_are_left_out(tmp_path):
    text = (FIXTURES / "unbiasedmwp" / "unbiasedmwp_train.jsonl").read_text(encoding="utf-8")
    (tmp_path / "unbiasedmwp").mkdir()
    (tmp_path / "unbiasedmwp" / "unbiasedmwp_train.jsonl").write_text(text.replace('"c3"', '""'), encoding="utf-8")
    dataset, report = load("unbiasedmwp", tmp_path)
    assert ids_of(dataset) == {"train": ["unb-1", "unb-2", "unb-3"], "test": ["unb-5"]}
    assert report.splits["train"].dropped == {"no_context": 1}
    (tmp_path / "math23k").symlink_to(FIXTURES / "math23k")
    _, report = load("math23k", tmp_path, extra_train=["unbiasedmwp"])
    assert report.extra["unbiasedmwp"].dropped == {"no_context": 1}
