"""Tasks of GLUE read from small files, from the real ones, and what is refused."""

from collections import Counter

import pytest

from hf_mwp import DataError, load_glue
from hf_mwp.commands.tasks.glue_files import GLUE_SOURCES


FILES = {
    "rte": ("RTE", "index\tsentence1\tsentence2\tlabel", '0\tIt "rains.\tIt rains.\tentailment'),
    "mrpc": ("MRPC", "Quality\t#1 ID\t#2 ID\t#1 String\t#2 String", '1\t7\t8\tHe said " no .\tHe said no .'),
    "stsb": (
        "STS-B",
        "index\tgenre\tfilename\tyear\told_index\tsource1\tsource2\tsentence1\tsentence2\tscore",
        "0\tnews\tf\t2012\t1\tnone\tnone\tA man.\tA person.\t3.800",
    ),
    "sst2": ("SST-2", "sentence\tlabel", "it 's charming \t1"),
    "cola": ("CoLA", None, "gj04\t0\t*\tThey drank the pub."),
    "wnli": ("WNLI", "index\tsentence1\tsentence2\tlabel", "0\tIt fell.\tThe cup fell.\t1"),
    "qqp": ("QQP", "id\tqid1\tqid2\tquestion1\tquestion2\tis_duplicate", '7\t1\t2\tWhat is "it?\tWhat is it?\t1'),
    "qnli": ("QNLI", "index\tquestion\tsentence\tlabel", '0\tWho said "so"?\tAnn "did.\tnot_entailment'),
    "mnli": (
        "MNLI",
        "index\tpromptID\tpairID\tgenre\tsentence1_binary_parse\tsentence2_binary_parse\tsentence1_parse\t"
        "sentence2_parse\tsentence1\tsentence2\tlabel1\tgold_label",
        '0\t3\t3c\tfiction\t( "a )\t( b )\t(ROOT a)\t(ROOT b)\tHe said "yes.\tHe spoke.\tneutral\tneutral',
    ),
}
LABELS = {"rte": 0, "mrpc": 1, "stsb": 3.8, "sst2": 1, "cola": 0, "wnli": 1, "qqp": 1, "qnli": 1, "mnli": 1}


def write(folder, header, *lines, dev=("dev",)):
    """Write the training split, and development splits of its first line."""
    folder.mkdir(parents=True, exist_ok=True)
    first_lines = [] if header is None else [header]
    splits = {"train": [*first_lines, *lines]} | dict.fromkeys(dev, [*first_lines, *lines[:1]])
    for name, lines_of_split in splits.items():
        (folder / f"{name}.tsv").write_text("".join(f"{line}\n" for line in lines_of_split), encoding="utf-8")


def write_rte(folder, num_rows=20):
    _, header, line = FILES["rte"]
    write(folder, header, *[line] * num_rows)


@pytest.mark.parametrize("task", FILES)
def test_rows_of_all_tasks_have_the_same_columns(task, tmp_path):
    folder, header, line = FILES[task]
    names = ("dev_matched", "dev_mismatched") if task == "mnli" else ("dev",)
    write(tmp_path / folder, header, *[line] * 20, dev=names)
    data = load_glue(task, tmp_path)
    assert data.num_rows == {"train": 18, "validation": 2, "test": len(names)}
    row = data["test"][0]
    assert list(row) == ["id", "sentence1", "sentence2", "label"]
    first_line = 1 if header is None else 2
    assert data["test"]["id"] == [f"{name}-{first_line}" for name in names]
    assert row["label"] == LABELS[task]
    assert row["sentence1"] in line
    assert (row["sentence2"] is None) == (task in ("sst2", "cola"))
    assert load_glue(task, tmp_path / folder, validation_fraction=0).num_rows == {"train": 20, "test": len(names)}


def test_matched_and_mismatched_rows_of_mnli_are_the_test_split(tmp_path):
    folder, header, line = FILES["mnli"]
    write(tmp_path / folder, header, *[line] * 20, dev=("dev_matched", "dev_mismatched"))
    mismatched = tmp_path / folder / "dev_mismatched.tsv"
    with mismatched.open("a") as file:
        file.write(f"{line}\n{line}\n")
    ids = load_glue("mnli", tmp_path)["test"]["id"]
    assert ids == ["dev_matched-2", "dev_mismatched-2", "dev_mismatched-3", "dev_mismatched-4"]
    mismatched.unlink()
    with pytest.raises(DataError, match="dev_mismatched.tsv.*`data_dir`"):
        load_glue("mnli", tmp_path)


def test_few_damaged_lines_of_qqp_are_skipped(tmp_path):
    folder, header, line = FILES["qqp"]
    lines = [line] * 1100
    write(tmp_path / folder, header, *lines, "8\t3\t4\tWhy?")
    assert load_glue("qqp", tmp_path, 0).num_rows == {"train": 1100, "test": 1}
    write(tmp_path / folder, header, *lines, "8\t3\t4\tWhy?", "9\t3\t4\tWhy?\tHow?\t2")
    with pytest.raises(DataError, match=r"line 1103.* 0 or 1.*'2'"):
        load_glue("qqp", tmp_path, 0)


def test_held_out_rows_are_the_same_share_of_each_class(tmp_path):
    labels = ["entailment"] * 40 + ["not_entailment"] * 20
    lines = [f"{index}\tfirst {index}\tsecond\t{label}" for index, label in enumerate(labels)]
    write(tmp_path, FILES["rte"][1], *lines)
    data = load_glue("rte", tmp_path, validation_fraction=0.25)
    assert Counter(data["validation"]["label"]) == {0: 10, 1: 5}
    assert len({*data["train"]["id"], *data["validation"]["id"]}) == 60
    assert data["test"]["id"] == ["dev-2"]
    assert data["validation"]["id"] == load_glue("rte", tmp_path, 0.25)["validation"]["id"]
    assert data["validation"]["id"] != load_glue("rte", tmp_path, 0.25, seed=1)["validation"]["id"]


def test_windows_line_ends_and_a_byte_order_mark(tmp_path):
    _, header, line = FILES["rte"]
    for name in ("train", "dev"):
        (tmp_path / f"{name}.tsv").write_bytes(f"\ufeff{header}\r\n{line}\r\n".encode())
    assert load_glue("rte", tmp_path, 0)["train"][0]["sentence2"] == "It rains."


@pytest.mark.parametrize(
    ("task", "line", "position", "message"),
    [
        ("rte", "1\tIt rains.\tentailment", (22, None), "4 fields.* 3"),
        ("rte", "1\ta\tb\tc\tentailment", (22, None), "4 fields.* 5"),
        ("rte", "1\tIt rains.\t \tentailment", (22, "sentence2"), "empty"),
        ("rte", "1\ta\tb\t1", (22, "label"), "entailment.*not_entailment.*'1'"),
        ("mrpc", "2\t7\t8\ta\tb", (22, "Quality"), "0 or 1.*'2'"),
        ("stsb", FILES["stsb"][2].replace("3.800", "5.1"), (22, "score"), r"0 to 5.*'5\.1'"),
        ("stsb", FILES["stsb"][2].replace("3.800", "nan"), (22, "score"), "0 to 5.*'nan'"),
        ("cola", "gj04\t1\t", (21, None), "4 fields.* 3"),
    ],
)
def test_damaged_rows_are_named_with_line_and_field(task, line, position, message, tmp_path):
    folder, header, good_line = FILES[task]
    write(tmp_path / folder, header, *[good_line] * 20, line)
    with pytest.raises(DataError, match=message) as error:
        load_glue(task, tmp_path)
    assert error.value.file.endswith("train.tsv")
    assert (error.value.line, error.value.field) == position


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("index\tsentence1\tsentence2\n0\ta\tb\n", "dev.tsv, line 1, field 'label': .*column"),
        (FILES["rte"][1] + "\n", "dev.tsv: .* rows"),
        ("", "dev.tsv: .* rows"),
        (None, "dev.tsv: .*`data_dir`"),
    ],
)
def test_damaged_development_split_is_named(content, message, tmp_path):
    write_rte(tmp_path)
    (tmp_path / "dev.tsv").unlink()
    if content is not None:
        (tmp_path / "dev.tsv").write_text(content)
    with pytest.raises(DataError, match=message):
        load_glue("rte", tmp_path)


def test_unknown_task_and_missing_file_are_named(tmp_path):
    with pytest.raises(ValueError, match="'sts-b'.* rte, mrpc, stsb"):
        load_glue("sts-b", tmp_path)
    with pytest.raises(DataError, match="RTE/train.tsv.*`data_dir`"):
        load_glue("rte", tmp_path)


@pytest.mark.parametrize(
    ("fraction", "message"), [(1, "1"), (0.01, r"0.01 .*20 .*\b20 .*\b0 "), (0.99, r"0.99 .*20 .*\b0 .*\b20 ")]
)
def test_each_split_needs_rows(fraction, message, tmp_path):
    write_rte(tmp_path)
    with pytest.raises(ValueError, match=f"`validation_fraction`.* {message}"):
        load_glue("rte", tmp_path, fraction)


def test_tasks_are_loaded_from_the_hub(monkeypatch):
    calls = []

    def load(name, task):
        calls.append((name, task))
        if task == "rte":
            raise ConnectionError("Couldn't reach")
        first, second = GLUE_SOURCES[task].hub_columns
        rows = [{first: "Who?", second: "Ann.", "label": index % 2, "idx": index} for index in range(20)]
        validation = [{**rows[0], "label": -1}] if task == "qqp" else rows[:3]
        return {"train": rows, "validation": validation}

    monkeypatch.setattr("datasets.load_dataset", load)
    data = load_glue("qnli")
    assert calls == [("nyu-mll/glue", "qnli")]
    assert data.num_rows == {"train": 18, "validation": 2, "test": 3}
    assert data["test"][1] == {"id": "dev-1", "sentence1": "Who?", "sentence2": "Ann.", "label": 1}
    with pytest.raises(DataError, match="Couldn't reach.*RTE.*`data_dir`"):
        load_glue("rte")
    with pytest.raises(DataError, match="validation_matched.*train, validation"):
        load_glue("mnli")
    with pytest.raises(DataError, match="glue, qqp, line 0, field 'label': .* 0 or 1, .*-1"):
        load_glue("qqp")


def test_both_development_splits_of_mnli_are_loaded_from_the_hub(monkeypatch):
    rows = [{"premise": f"{index}", "hypothesis": "b", "label": 2} for index in range(10)]
    splits = {"train": rows, "validation_matched": rows[:1], "validation_mismatched": rows[1:2]}
    monkeypatch.setattr("datasets.load_dataset", lambda name, task: splits)
    test = load_glue("mnli")["test"]
    assert test["id"] == ["dev_matched-0", "dev_mismatched-0"]
    assert test["sentence1"] == ["0", "1"]


@pytest.mark.shared_data
@pytest.mark.parametrize(
    ("task", "num_train", "num_dev", "num_ones"),
    [("rte", 2490, 277, 1241), ("mrpc", 3668, 408, 2474), ("cola", 8551, 1043, 6023)],
)
def test_published_files_are_read(task, num_train, num_dev, num_ones, shared_data):
    data = load_glue(task, shared_data / "glue")
    assert len(data["train"]) + len(data["validation"]) == num_train
    assert len(data["test"]) == num_dev
    assert len(data["validation"]) == pytest.approx(num_train / 10, abs=3)
    assert sum(data["train"]["label"]) + sum(data["validation"]["label"]) == num_ones


@pytest.mark.shared_data
def test_published_scores_are_read(shared_data):
    data = load_glue("stsb", shared_data / "glue", validation_fraction=0)
    assert data.num_rows == {"train": 5749, "test": 1500}
    assert (min(data["train"]["label"]), max(data["train"]["label"])) == (0, 5)
