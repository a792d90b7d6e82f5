"""What a model was trained on goes from command to command, and evaluations tell by it what is new."""

import json
import re

import pytest

from hf_mwp.commands.main import main
from hf_mwp.solver.data import TrainingTexts


SMALL = ["--use_cpu", "--max_steps=1", "--per_device_train_batch_size=8", "--no-test", "--eval_strategy=no"]
SMALL += ["--save_strategy=no"]


def texts_of(path):
    return [json.loads(line)["text"] for line in path.read_text(encoding="utf-8").splitlines()]


@pytest.fixture(scope="module")
def trained(problems, encoder, tmp_path_factory):
    folder = tmp_path_factory.mktemp("texts") / "teacher"
    argv = ["train", "--dataset", str(problems), "--encoder", str(encoder), "--output_dir", str(folder)]
    assert main([*argv, *SMALL]) == 0
    return folder


def test_a_split_that_was_trained_on_is_a_warning(trained, problems, encoder, tmp_path, capsys):
    argv = ["evaluate", "--model", str(trained), "--output_dir", str(tmp_path), "--dataset"]
    assert main([*argv, str(problems / "train.jsonl"), "--split=train", "--validation_fraction=0"]) == 0
    shown = " ".join(capsys.readouterr().out.split())
    count = len(set(texts_of(problems / "train.jsonl")))
    assert re.search("36 of .*36 problems", shown) and count == 36
    assert f"{encoder.parent.name}/{encoder.name} " in shown
    figures = json.loads((tmp_path / "metrics.json").read_text())["train"]
    groups = {name: report["num_problems"] for name, report in figures["reports"].items()}
    assert groups == {
        "all problems": 36,
        "masked text not in training data": 0,
        "exact text not in training data": 0,
        "exact text in training data": 36,
    }
    assert figures["training_texts"]["known"] and figures["training_texts"]["texts"] == 36
    (record, *_) = map(json.loads, (tmp_path / "predictions.jsonl").read_text("utf-8").splitlines())
    assert record["exact_text_in_training_data"] and record["masked_text_in_training_data"]


def test_they_go_from_command_to_command(trained, problems, tmp_path, capsys):
    answers = tmp_path / "answers.jsonl"
    rows = [{"text": f"小明有{n}个苹果，给了小红一半，还有几个？", "answer": str(n)} for n in range(2, 40)]
    answers.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    label = [
        "pseudo-label",
        "--model",
        str(trained),
        "--problems",
        str(answers),
        "--output_dir",
        str(tmp_path / "label"),
    ]
    assert main([*label, "--num_beams=8"]) == 0
    assert len(TrainingTexts.load(tmp_path / "label")) == 36
    other = tmp_path / "other.jsonl"
    other.write_text(
        '{"text": "小红有5个梨，吃了2个，还有几个？", "equation": "x=5-2", "answer": "3"}\n', encoding="utf-8"
    )
    argv = ["distill", "--teacher", str(trained), "--dataset", str(other), "--validation_fraction=0"]
    assert main([*argv, "--student_layers=1", "--output_dir", str(tmp_path / "student"), *SMALL]) == 0
    mixed = ["mix", "--pretrained", str(tmp_path / "student"), "--distilled", str(tmp_path / "student")]
    assert main([*mixed, "--output_dir", str(tmp_path / "mixed")]) == 0
    card = ["card", "--model", str(tmp_path / "mixed"), "--output_dir", str(tmp_path / "hub")]
    assert main(card) == 0
    assert main([*card[:-1], str(tmp_path / "encoder"), "--part=encoder"]) == 0
    for name in ("student", "mixed", "hub", "encoder"):
        texts = TrainingTexts.load(tmp_path / name)
        assert len(texts) == 37 and all(texts.seen(text)[0] for text in texts_of(problems / "train.jsonl")), name
        assert not any(text.endswith(("student", "teacher")) for text in texts.unknown)
    record = json.loads((tmp_path / "hub" / "record.json").read_text("utf-8"))["training_texts"]
    assert record["texts"] == 37 and any("other.jsonl" in source for source in record["sources"])
