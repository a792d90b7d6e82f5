"""The example that distils out-of-fold predictions, with tiny solvers."""

import json
from pathlib import Path

import pytest
import torch
from transformers import BertModel

import hf_mwp
from hf_mwp.commands.tasks.data_options import DataArguments
from hf_mwp.solver.batches import MwpCollator
from tests.examples.scripts import load_script, write_json_lines
from tests.tiny import tiny_bert_config, tiny_dataset, tiny_processor, tiny_rows, tiny_solver, tiny_tokenizer


@pytest.fixture(scope="module")
def script():
    return load_script("out_of_fold.py")


def test_solver_of_its_fold_predicts_each_row(script):
    processor = tiny_processor()
    solvers = [tiny_solver(processor, seed=seed).eval() for seed in (0, 1)]
    rows = processor.prepare_dataset(tiny_dataset(12))
    folds = [sum(ids) % 2 for ids in rows["input_ids"]]
    assert set(folds) == {0, 1}
    batch = MwpCollator(processor)(list(rows))
    with torch.no_grad():
        logits = script.OutOfFoldTeacher(solvers).eval()(**batch).logits
        solver_logits = [solver(**batch).logits for solver in solvers]
    for row, fold in enumerate(folds):
        assert logits[row].equal(solver_logits[fold][row])
        assert not logits[row].equal(solver_logits[1 - fold][row])


@pytest.mark.slow
def test_all_solvers_are_trained_once_and_evaluated(script, tmp_path, monkeypatch):
    data = tmp_path / "data"
    data.mkdir()
    write_json_lines(data / "train.jsonl", tiny_rows(24))
    write_json_lines(data / "validation.jsonl", tiny_rows(8, seed=1))
    encoder = tmp_path / "encoder"
    BertModel(tiny_bert_config(num_hidden_layers=1)).save_pretrained(encoder)
    tiny_tokenizer().save_pretrained(encoder)
    output = tmp_path / "out"
    trainings = []
    make_trainer = script.make_trainer

    def recorded_trainer(task, config, model, processor, **teachers):
        name = Path(config.output_dir).name.rpartition("-")[0]
        trainings.append((name, config.max_steps, list(teachers)))
        return make_trainer(task, config, model, processor, **teachers)

    monkeypatch.setattr(script, "make_trainer", recorded_trainer)
    argv = ["--dataset", str(data), "--encoder", str(encoder), "--output_dir", str(output), "--use_cpu", "true"]
    argv += ["--max_steps", "2", "--per_device_train_batch_size", "4", "--num_beams", "1"]
    assert script.main(argv) == 0
    assert trainings == [
        ("labels", 2, []),
        ("fold_0", 1, []),
        ("fold_1", 1, []),
        ("in_fold", 2, ["teacher_model"]),
        ("out_of_fold", 2, ["teacher_model"]),
    ]
    record = json.loads((output / "metrics.json").read_text())
    assert list(record["validation"]) == [name for name, _, _ in trainings]
    assert record["problems"] == 8
    assert isinstance(hf_mwp.load_solver(next(output.glob("out_of_fold-*")))[0], hf_mwp.MwpSolver)
    # Completed trainings are skipped, unless an option changes their result.
    assert script.main(argv) == 0
    assert len(trainings) == 5
    assert script.main([*argv, "--soft_label_weight", "0.9"]) == 0
    assert len(trainings) == 10


def test_teachers_of_folds_do_not_see_their_problems(script, tmp_path):
    processor = tiny_processor()
    rows = tiny_rows(24)
    file = write_json_lines(tmp_path / "train.jsonl", rows)
    options = DataArguments(file, validation_fraction=0)
    ids = []
    for fold in range(3):
        task = script.OutsideFold(options, 3, fold)
        dataset = task.trainer_arguments(tiny_solver(processor), processor)["train_dataset"]
        folds = script.fold_of(MwpCollator(processor)(list(dataset))["input_ids"], 3)
        assert set(folds.tolist()) <= {0, 1, 2} - {fold}
        ids += dataset["id"]
    # Each problem is seen by the teachers of the two other folds.
    assert sorted(ids) == sorted(2 * [row["id"] for row in rows])
