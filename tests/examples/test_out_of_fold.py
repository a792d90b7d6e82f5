"""The example that distils out-of-fold predictions, with tiny solvers."""

import json

import torch
from transformers import BertModel

import hf_mwp
from hf_mwp.data import MwpCollator
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
    trained = []
    for kind in ("SolverTrainer", "DistillationTrainer"):
        trainer = getattr(script, kind)

        class Counted(trainer):
            def train(self, *args, **kwargs):
                trained.append((self.args.output_dir.rsplit("/", 1)[-1], self.args.max_steps))
                return super().train(*args, **kwargs)

        monkeypatch.setattr(script, kind, Counted)
    argv = ["--dataset", str(data), "--encoder", str(encoder), "--output_dir", str(output), "--use_cpu", "true"]
    argv += ["--max_steps", "4", "--per_device_train_batch_size", "4", "--beams", "1"]
    assert script.main(argv) == 0
    names = ["labels", "fold_0", "fold_1", "in_fold", "out_of_fold"]
    steps = dict(trained)
    assert [*steps] == names and {steps[name] for name in ("labels", "in_fold", "out_of_fold")} == {4}
    assert 4 <= steps["fold_0"] + steps["fold_1"] <= 5
    record = json.loads((output / "metrics.json").read_text())
    assert [*record["validation"]] == names and record["problems"] == 8
    assert isinstance(hf_mwp.load_solver(output / "out_of_fold")[0], hf_mwp.MwpSolver)
    assert script.main(argv) == 0 and len(trained) == 5
