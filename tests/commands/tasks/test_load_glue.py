"""Tasks of GLUE read from small files, from the real ones, and what is refused."""

from collections import Counter

import pytest

import hf_mwp
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
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in (("train", lines), *((each, lines[:1]) for each in dev)):
        text = "".join(f"{line}\n" for line in ([] if header is None else [header]) + list(content))
        (folder / f"{name}.tsv").write_text(text, encoding="utf-8")


@pytest.mark.parametrize("task", FILES)
def test_rows_of_one_schema(task, tmp_path):
    folder, header, line = FILES[task]
    names = ("dev_matched", "dev_mismatched") if task == "mnli" else ("dev",)
    write(tmp_path / folder, header, *[line] * 20, dev=names)
    data = load_glue(task, tmp_path)
    assert data.num_rows == {"train": 18, "validation": 2, "test": len(names)}
    row = data["test"][0]
    assert list(row) == ["id", "sentence1", "sentence2", "label"]
    assert data["test"]["id"] == [f"{name}-{1 if header is None else 2}" for name in names]
    assert row["label"] == LABELS[task]
    assert row["sentence1"] in line and (row["sentence2"] is None) == (task in ("sst2", "cola"))
    assert load_glue(task, tmp_path / folder, validation_fraction=0).num_rows == {"train": 20, "test": len(names)}


def test_the_rows_of_both_parts_of_mnli_take_turns(tmp_path):
    folder, header, line = FILES["mnli"]
    write(tmp_path / folder, header, *[line] * 20, dev=("dev_matched", "dev_mismatched"))
    with (tmp_path / folder / "dev_mismatched.tsv").open("a") as file:
        file.write(f"{line}\n{line}\n")
    rows = load_glue("mnli", tmp_path)["test"]["id"]
    assert rows == ["dev_matched-2", "dev_mismatched-2", "dev_mismatched-3", "dev_mismatched-4"]
    (tmp_path / folder / "dev_mismatched.tsv").unlink()
    with pytest.raises(DataError, match="dev_mismatched.tsv.*`data_dir`"):
        load_glue("mnli", tmp_path)


def test_a_few_lines_of_qqp_hold_no_row(tmp_path):
    folder, header, line = FILES["qqp"]
    write(tmp_path / folder, header, *[line] * 1100, "8\t3\t4\tWhy?")
    assert load_glue("qqp", tmp_path, 0).num_rows == {"train": 1100, "test": 1}
    write(tmp_path / folder, header, *[line] * 1100, "8\t3\t4\tWhy?", "9\t3\t4\tWhy?\tHow?\t2")
    with pytest.raises(DataError, match=r"line 1103.* 0 or 1.*'2'"):
        load_glue("qqp", tmp_path, 0)


def test_the_held_out_rows_are_the_same_share_of_each_class(tmp_path):
    names = ["entailment"] * 40 + ["not_entailment"] * 20
    lines = [f"{index}\tfirst {index}\tsecond\t{name}" for index, name in enumerate(names)]
    write(tmp_path, FILES["rte"][1], *lines)
    data = load_glue("rte", tmp_path, validation_fraction=0.25)
    assert Counter(data["validation"]["label"]) == {0: 10, 1: 5}
    ids = [row["id"] for part in ("train", "validation") for row in data[part]]
    assert len({*ids}) == 60 and {row["id"] for row in data["test"]} == {"dev-2"}
    assert data["validation"].to_list() == load_glue("rte", tmp_path, 0.25)["validation"].to_list()
    other = load_glue("rte", tmp_path, 0.25, seed=1)["validation"]
    assert other.to_list() != data["validation"].to_list()


def test_windows_line_ends_and_a_mark_at_the_beginning(tmp_path):
    lines = [FILES["rte"][1], FILES["rte"][2], ""]
    for name in ("train", "dev"):
        (tmp_path / f"{name}.tsv").write_bytes(b"\xef\xbb\xbf" + "\r\n".join(lines).encode())
    assert load_glue("rte", tmp_path, 0)["train"].to_list()[0]["sentence2"] == "It rains."


@pytest.mark.parametrize(
    ("task", "line", "place", "message"),
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
def test_damaged_rows_are_named(task, line, place, message, tmp_path):
    folder, header, good = FILES[task]
    write(tmp_path / folder, header, *[good] * 20, line)
    with pytest.raises(DataError, match=message) as error:
        load_glue(task, tmp_path)
    assert error.value.file.endswith("train.tsv") and (error.value.line, error.value.field) == place


def test_what_is_not_there(tmp_path):
    with pytest.raises(ValueError, match="'sts-b'.* rte, mrpc, stsb"):
        load_glue("sts-b", tmp_path)
    with pytest.raises(DataError, match="RTE/train.tsv.*`data_dir`"):
        load_glue("rte", tmp_path)
    write(tmp_path, FILES["rte"][1], FILES["rte"][2])
    with pytest.raises(ValueError, match="`validation_fraction`.* 1"):
        load_glue("rte", tmp_path, 1)
    write(tmp_path, FILES["rte"][1], *[FILES["rte"][2]] * 20)
    for share, left in ((0.01, r"\b20 .*\b0 "), (0.99, r"\b0 .*\b20 ")):
        with pytest.raises(ValueError, match=rf"`validation_fraction`.* {share} .*20 .*{left}"):
            load_glue("rte", tmp_path, share)
    (tmp_path / "dev.tsv").write_text("index\tsentence1\tsentence2\n0\ta\tb\n")
    with pytest.raises(DataError, match="dev.tsv, line 1, field 'label': .*column"):
        load_glue("rte", tmp_path)
    for content in (FILES["rte"][1] + "\n", ""):
        (tmp_path / "dev.tsv").write_text(content)
        with pytest.raises(DataError, match="dev.tsv: .* rows"):
            load_glue("rte", tmp_path)
    (tmp_path / "dev.tsv").unlink()
    with pytest.raises(DataError, match="dev.tsv: .*`data_dir`"):
        load_glue("rte", tmp_path)


def test_the_hub(monkeypatch):
    asked = []

    def load(name, task):
        asked.append((name, task))
        if task == "rte":
            raise ConnectionError("Couldn't reach")
        first, second = GLUE_SOURCES[task].hub_columns
        rows = [{first: "Who?", second: "Ann.", "label": index % 2, "idx": index} for index in range(20)]
        return {"train": rows, "validation": [{**rows[0], "label": -1}] if task == "qqp" else rows[:3]}

    monkeypatch.setattr("datasets.load_dataset", load)
    data = hf_mwp.load_glue("qnli")
    assert asked == [("nyu-mll/glue", "qnli")] and data.num_rows == {"train": 18, "validation": 2, "test": 3}
    assert data["test"][1] == {"id": "dev-1", "sentence1": "Who?", "sentence2": "Ann.", "label": 1}
    with pytest.raises(DataError, match="Couldn't reach.*RTE.*`data_dir`"):
        load_glue("rte")
    with pytest.raises(DataError, match="validation_matched.*train, validation"):
        load_glue("mnli")
    with pytest.raises(DataError, match="glue, qqp, line 0, field 'label': .* 0 or 1, .*-1"):
        load_glue("qqp")


def test_both_parts_of_mnli_on_the_hub(monkeypatch):
    rows = [{"premise": f"{index}", "hypothesis": "b", "label": 2} for index in range(10)]
    parts = {"train": rows, "validation_matched": rows[:1], "validation_mismatched": rows[1:2]}
    monkeypatch.setattr("datasets.load_dataset", lambda name, task: parts)
    test = load_glue("mnli")["test"]
    assert test["id"] == ["dev_matched-0", "dev_mismatched-0"] and test["sentence1"] == ["0", "1"]


@pytest.mark.shared_data
@pytest.mark.parametrize(
    ("task", "train", "dev", "ones"),
    [("rte", 2490, 277, 1241), ("mrpc", 3668, 408, 2474), ("stsb", 5749, 1500, None), ("cola", 8551, 1043, 6023)],
)
def test_real_files(task, train, dev, ones, shared_data):
    data = load_glue(task, shared_data / "glue")
    held_out = len(data["validation"])
    assert len(data["train"]) + held_out == train and len(data["test"]) == dev
    assert held_out == pytest.approx(train / 10, abs=3)
    if ones is not None:
        assert sum(data["train"]["label"]) + sum(data["validation"]["label"]) == ones
    else:
        assert max(data["train"]["label"]) == 5 and min(data["train"]["label"]) == 0
