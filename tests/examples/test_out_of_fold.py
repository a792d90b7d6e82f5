"""The example that distils out-of-fold predictions, with tiny solvers."""

import json
from pathlib import Path

import torch
from transformers import BertModel

import hf_mwp
from hf_mwp.commands.tasks.data_options import DataArguments
from hf_mwp.solver.batches import MwpCollator
from tests.examples.scripts import load_script
from tests.tiny import tiny_bert_config, tiny_dataset, tiny_processor, tiny_rows, tiny_solver, tiny_tokenizer


def test_the_solver_of_its_fold_predicts_each_row():
    script, processor = load_script("out_of_fold.py"), tiny_processor()
    solvers = [tiny_solver(processor, seed=seed).eval() for seed in (0, 1)]
    rows = processor.prepare_dataset(tiny_dataset(12))
    folds = [sum(ids) % 2 for ids in rows["input_ids"]]
    assert {*folds} == {0, 1}
    batch = MwpCollator(processor)(list(rows))
    with torch.no_grad():
        found = script.OutOfFoldTeacher(solvers).eval()(**batch).logits
        alone = [solver(**batch).logits for solver in solvers]
    for row, fold in enumerate(folds):
        assert found[row].equal(alone[fold][row]) and not found[row].equal(alone[1 - fold][row])


def test_all_solvers_are_trained_once_and_evaluated(tmp_path, monkeypatch):
    data, encoder, output = tmp_path / "data", tmp_path / "encoder", tmp_path / "out"
    data.mkdir()
    for name, rows in (("train", tiny_rows(24)), ("validation", tiny_rows(8, seed=1))):
        (data / f"{name}.jsonl").write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    BertModel(tiny_bert_config(num_hidden_layers=1)).save_pretrained(encoder)
    tiny_tokenizer().save_pretrained(encoder)
    script = load_script("out_of_fold.py")
    trained, make = [], script.make_trainer

    def counted(task, config, model, processor, **teachers):
        trained.append((Path(config.output_dir).name.rpartition("-")[0], config.max_steps, [*teachers]))
        return make(task, config, model, processor, **teachers)

    monkeypatch.setattr(script, "make_trainer", counted)
    argv = ["--dataset", str(data), "--encoder", str(encoder), "--output_dir", str(output), "--use_cpu", "true"]
    argv += ["--max_steps", "4", "--per_device_train_batch_size", "4", "--num_beams", "1"]
    assert script.main(argv) == 0
    names = ["labels", "fold_0", "fold_1", "in_fold", "out_of_fold"]
    from_teachers = [[], [], [], ["teacher_model"], ["teacher_model"]]
    assert trained == [*zip(names, [4, 2, 2, 4, 4], from_teachers, strict=True)]
    record = json.loads((output / "metrics.json").read_text())
    assert [*record["validation"]] == names and record["problems"] == 8
    assert isinstance(hf_mwp.load_solver(next(output.glob("out_of_fold-*")))[0], hf_mwp.MwpSolver)
    # Completed trainings are skipped, unless an option changes their result.
    assert script.main(argv) == 0 and len(trained) == 5
    assert script.main([*argv, "--soft_label_weight", "0.9"]) == 0 and len(trained) == 10


def test_teachers_of_folds_do_not_see_their_problems(tmp_path):
    script, processor, rows = load_script("out_of_fold.py"), tiny_processor(), tiny_rows(24)
    file = tmp_path / "train.jsonl"
    file.write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    options, solver = DataArguments(str(file), validation_fraction=0), tiny_solver(processor)
    seen = []
    for fold in range(3):
        task = script.OutsideFold(options, 3, fold)
        used = task.trainer_arguments(solver, processor)["train_dataset"]
        folds = script.fold_of(MwpCollator(processor)(list(used))["input_ids"], 3).tolist()
        assert fold not in folds and {*folds} <= {0, 1, 2}
        seen += [*used["id"]]
    # Each problem is seen by the teachers of the two other folds.
    assert sorted(seen) == sorted(2 * [row["id"] for row in rows])
