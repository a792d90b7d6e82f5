"""What a model was trained on goes from command to command, and evaluations report by it what is new."""

import pytest

from hf_mwp.commands.main import main
from hf_mwp.solver.data import TrainingTexts
from tests.commands.folders import read_json, read_rows, write_rows


SMALL = ["--use_cpu", "--max_steps=1", "--per_device_train_batch_size=8", "--no-test", "--eval_strategy=no"]
SMALL += ["--save_strategy=no"]


@pytest.fixture(scope="module")
def trained(problems, encoder, tmp_path_factory):
    folder = tmp_path_factory.mktemp("texts") / "teacher"
    argv = ["train", "--dataset", str(problems), "--encoder", str(encoder), "--output_dir", str(folder)]
    assert main([*argv, *SMALL]) == 0
    return folder


@pytest.mark.slow
def test_evaluation_on_training_problems_is_a_warning(trained, problems, encoder, tmp_path, output_of):
    argv = ["evaluate", "--model", trained, "--output_dir", tmp_path, "--dataset", problems / "train.jsonl"]
    output = output_of(*argv, "--split=train", "--validation_fraction=0")
    assert "36 of these 36 problems" in output
    assert f"{encoder.parent.name}/{encoder.name} " in output
    section = read_json(tmp_path / "metrics.json")["train"]
    sizes = {name: report["num_problems"] for name, report in section["reports"].items()}
    assert sizes == {
        "all problems": 36,
        "masked text not in training data": 0,
        "exact text not in training data": 0,
        "exact text in training data": 36,
    }
    assert section["training_texts"]["known"]
    assert section["training_texts"]["texts"] == 36
    record = read_rows(tmp_path / "predictions.jsonl")[0]
    assert record["exact_text_in_training_data"]
    assert record["masked_text_in_training_data"]


def test_training_texts_go_from_command_to_command(trained, problems, tmp_path, output_of):
    def run(command, name, *options):
        output_of(command, "--output_dir", tmp_path / name, *options)
        return tmp_path / name

    rows = [{"text": f"小明有{n}个苹果，给了小红一半，还有几个？", "answer": str(n)} for n in range(2, 40)]
    answers = write_rows(tmp_path / "answers.jsonl", rows)
    label = run("pseudo-label", "label", "--model", trained, "--problems", answers, "--num_beams=8")
    assert len(TrainingTexts.load(label)) == 36
    row = {"text": "小红有5个梨，吃了2个，还有几个？", "equation": "x=5-2", "answer": "3"}
    other = write_rows(tmp_path / "other.jsonl", [row])
    data = ["--dataset", other, "--validation_fraction=0"]
    student = run("distill", "student", "--teacher", trained, *data, "--student_layers=1", *SMALL)
    mixed = run("mix", "mixed", "--pretrained", student, "--distilled", student)
    card = run("card", "card", "--model", mixed)
    encoder = run("card", "encoder", "--model", mixed, "--part=encoder")
    for folder in (student, mixed, card, encoder):
        texts = TrainingTexts.load(folder)
        assert len(texts) == 37, folder
        for row in read_rows(problems / "train.jsonl"):
            assert texts.seen(row["text"])[0], folder
        assert not any(text.endswith(("student", "teacher")) for text in texts.unknown)
    record = read_json(card / "record.json")["training_texts"]
    assert record["texts"] == 37
    assert any("other.jsonl" in source for source in record["sources"])
