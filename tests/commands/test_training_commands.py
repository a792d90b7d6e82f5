import json
import re
import shutil
from pathlib import Path

import pytest
import torch
import yaml
from safetensors.torch import load_file
from transformers import pipeline

from hf_mwp.commands.main import main
from hf_mwp.commands.options.parsing import parse
from hf_mwp.commands.options.stages import types_of
from hf_mwp.solver.models import MwpSolver
from hf_mwp.solver.training import SolverTrainer


SMALL = ["--use_cpu", "--num_train_epochs=2", "--learning_rate=1e-3", "--per_device_train_batch_size=8"]


@pytest.fixture(scope="module")
def trained(problems, encoder, tmp_path_factory):
    """A run folder of `hf-mwp train`, with a checkpoint of each epoch."""
    folder = tmp_path_factory.mktemp("train") / "run"
    config = folder.parent / "train.yaml"
    options = {"encoder": str(encoder), "dataset": str(problems), "decoder_config": {"dropout": 0.1, "max_length": 9}}
    config.write_text(yaml.safe_dump(options | {"eval_strategy": "epoch", "save_strategy": "epoch"}))
    argv = ["train", "--config", str(config), "--output_dir", str(folder), "--load_best_model_at_end", *SMALL]
    assert main(argv) == 0
    return folder


def test_a_run_leaves_its_record(trained):
    names = {path.name for path in trained.iterdir()}
    assert names >= {
        "config.json",
        "model.safetensors",
        "mwp_processor.json",
        "run_config.yaml",
        "run.json",
        "run.log",
        "metrics.json",
        "data.json",
        "learning_curve.png",
        "trainer_state.json",
    }
    run = json.loads((trained / "run.json").read_text())
    assert run["seed"] == 42 and run["libraries"]["torch"] == torch.__version__ and run["wall_seconds"] > 0
    metrics = json.loads((trained / "metrics.json").read_text())
    assert metrics["test"]["reports"]["all problems"]["num_problems"] == 9
    assert 0 <= metrics["validation"]["reports"]["all problems"]["answer_accuracy"] <= 1
    data = json.loads((trained / "data.json").read_text())
    assert data["used"] == {"train": 36, "validation": 8, "test": 9}
    assert "validation: " in (trained / "run.log").read_text()
    assert (trained / "learning_curve.png").read_bytes().startswith(b"\x89PNG")


def test_the_folder_loads_as_a_pipeline(trained):
    assert pipeline("math-word-problem", model=str(trained), device="cpu")("小明有4个苹果，又买了2个")[0]["numbers"]
    assert MwpSolver.from_pretrained(trained).decoder.config.dropout == 0.1


def test_the_resolved_config_gives_the_same_model(trained, tmp_path):
    argv = ["train", "--config", str(trained / "run_config.yaml"), "--output_dir", str(tmp_path)]
    assert main(argv) == 0
    first = load_file(trained / "model.safetensors")
    second = load_file(tmp_path / "model.safetensors")
    assert all(torch.equal(first[name], second[name]) for name in first)


def test_an_earlier_run_is_not_overwritten(trained, problems, encoder, tmp_path, capsys):
    argv = ["train", "--dataset", str(problems), "--encoder", str(encoder), *SMALL]
    assert main([*argv, "--output_dir", str(trained)]) == 1
    assert re.search("--resume.*--overwrite", capsys.readouterr().err)
    assert main([*argv, "--output_dir", str(tmp_path), "--resume"]) == 1
    assert re.search(f"{tmp_path}.*checkpoint.*--resume", capsys.readouterr().err)


def test_a_finished_model_without_checkpoints_is_not_written_over(problems, solver_folder, tmp_path, capsys):
    for path in solver_folder.iterdir():
        shutil.copy(path, tmp_path)
    before = (tmp_path / "model.safetensors").read_bytes()
    argv = ["train", "--dataset", str(problems), "--solver", str(solver_folder), "--output_dir", str(tmp_path), *SMALL]
    argv += ["--save_strategy=no", "--no_test", "--max_steps=3"]
    assert main(argv) == 1
    assert re.search(r"config\.json, model\.safetensors.*--overwrite", capsys.readouterr().err)
    assert (tmp_path / "model.safetensors").read_bytes() == before and not (tmp_path / "run.json").exists()
    assert main([*argv, "--overwrite"]) == 0
    assert (tmp_path / "model.safetensors").read_bytes() != before


def test_adapters_are_trained_and_merged(problems, encoder, tmp_path, capsys):
    options = {"encoder": str(encoder), "dataset": str(problems), "lora_rank": 4, "lora_alpha": 8, "save_steps": 1}
    config = tmp_path / "lora.yaml"
    config.write_text(yaml.safe_dump(options | {"lora_targets": ["query"], "test": False, "max_steps": 2}))
    argv = ["train", "--config", str(config), "--output_dir", str(tmp_path / "run"), *SMALL]
    assert main([*argv, "--lora_targets=quary"]) == 1
    assert re.search("'quary'.* query, key, value", capsys.readouterr().err)
    assert main(argv) == 0
    metrics = json.loads((tmp_path / "run" / "metrics.json").read_text())
    assert f"{metrics['trained_parameters']:,} of " in capsys.readouterr().out
    solver = MwpSolver.from_pretrained(tmp_path / "run")
    assert metrics["parameters"] == sum(each.numel() for each in solver.parameters()) > metrics["trained_parameters"]
    weights = load_file(tmp_path / "run" / "model.safetensors")
    shutil.rmtree(tmp_path / "run" / "checkpoint-2")
    assert main([*argv, "--resume", "--lora_rank=2"]) == 1
    assert "lora_rank: 4 -> 2" in capsys.readouterr().err
    assert main([*argv, "--resume"]) == 0
    again = load_file(tmp_path / "run" / "model.safetensors")
    assert all(torch.equal(again[name], value) for name, value in weights.items())


def test_after_a_full_disk_a_run_goes_on_from_the_checkpoint_before(
    problems, solver_folder, tmp_path, monkeypatch, capsys
):
    save = torch.save

    def full(content, file, *args, **kwargs):
        if "checkpoint-2" in str(file):
            Path(file).write_bytes(b"PK")
            raise RuntimeError("[enforce fail at inline_container.cc:672] . unexpected pos 576 vs 534")
        return save(content, file, *args, **kwargs)

    monkeypatch.setattr(torch, "save", full)
    argv = ["train", "--dataset", str(problems), "--solver", str(solver_folder), "--output_dir", str(tmp_path), *SMALL]
    argv += ["--save_steps=1", "--save_strategy=steps", "--no_test", "--max_steps=2"]
    assert main(argv) == 1
    assert re.search(r"cannot be written to .*checkpoint-2", capsys.readouterr().err)
    monkeypatch.undo()
    assert main([*argv, "--resume"]) == 0
    record = json.loads((tmp_path / "run.json").read_text())
    assert record["resumed_from"].endswith("checkpoint-1") and len(record["earlier_starts"]) == 1


def test_a_run_that_starts_anew_leaves_no_checkpoint_of_the_old_one(trained, tmp_path):
    shutil.copytree(trained / "checkpoint-10", tmp_path / "checkpoint-990")
    argv = ["train", "--config", str(trained / "run_config.yaml"), "--output_dir", str(tmp_path), "--no-test"]
    assert main([*argv, "--overwrite", "--num_train_epochs=1"]) == 0
    assert [path.name for path in tmp_path.glob("checkpoint-*")] == ["checkpoint-5"]


def test_an_interrupted_overwrite_keeps_the_old_model(trained, tmp_path, monkeypatch):
    run = shutil.copytree(trained, tmp_path / "run")
    (run / "plausibility.json").write_text("{}")
    before = (run / "model.safetensors").read_bytes()
    argv = [
        "train",
        "--config",
        str(trained / "run_config.yaml"),
        "--output_dir",
        str(run),
        "--no-test",
        "--overwrite",
    ]
    with monkeypatch.context() as patch:
        patch.setattr(SolverTrainer, "train", lambda *args, **kwargs: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            main(argv)
    assert (run / "plausibility.json").exists()
    assert (run / "model.safetensors").read_bytes() == before
    # The re-ranker of the old weights is removed with them.
    assert main([*argv, "--num_train_epochs=1"]) == 0
    assert not (run / "plausibility.json").exists()
    assert (run / "model.safetensors").read_bytes() != before


def test_resuming_goes_on(trained, tmp_path):
    # The folder itself stays as other tests expect it.
    run = shutil.copytree(trained, tmp_path / "run")
    before = load_file(run / "model.safetensors")
    argv = ["train", "--config", str(run / "run_config.yaml"), "--resume", "--num_train_epochs=3", "--no-test"]
    assert main([*argv, "--output_dir", str(run)]) == 0
    state = json.loads((run / "trainer_state.json").read_text())
    assert state["epoch"] == 3.0
    assert before.keys() == load_file(run / "model.safetensors").keys()


def test_resuming_with_other_options_is_refused(trained, capsys):
    before = [(trained / name).read_bytes() for name in ("run_config.yaml", "run.json", "model.safetensors")]
    argv = ["train", "--config", str(trained / "run_config.yaml"), "--resume", "--no-test"]
    assert main([*argv, "--seed=7", "--learning_rate=0.01"]) == 1
    told = capsys.readouterr().err
    assert "learning_rate: 0.001 -> 0.01" in told and "seed: 42 -> 7" in told
    assert [(trained / name).read_bytes() for name in ("run_config.yaml", "run.json", "model.safetensors")] == before


def test_distill(trained, problems, tmp_path):
    argv = ["distill", "--teacher", str(trained), "--student_layers=1", "--dataset", str(problems), *SMALL]
    argv += ["--cache_teacher_outputs", "--eval_strategy=epoch", "--logging_steps=2"]
    assert main([*argv, "--output_dir", str(tmp_path)]) == 0
    done = re.search(r"teacher cache: (\d+) of (\d+)", (tmp_path / "run.log").read_text())
    assert done and done[1] == done[2] and len(list((tmp_path / "teacher_cache").glob("*/manifest.json"))) == 1
    student = MwpSolver.from_pretrained(tmp_path)
    assert student.config.num_hidden_layers == 1
    history = json.loads((tmp_path / "trainer_state.json").read_text())["log_history"]
    assert any("loss_soft" in entry for entry in history)
    assert (
        main(["evaluate", "--model", str(tmp_path), "--dataset", str(problems), "--output_dir", str(tmp_path / "p")])
        == 0
    )


def test_distill_with_a_teacher_cache(tmp_path):
    argv = ["--teacher=a", "--cache_teacher_outputs", "--teacher_cache_dir", str(tmp_path)]
    *_, config = parse("distill", "", types_of("distill"), argv)
    assert config.cache_teacher_outputs and config.teacher_cache_dir == str(tmp_path)


def test_distill_needs_a_teacher(problems, capsys):
    assert main(["distill", "--dataset", str(problems)]) == 1
    assert "`teacher`" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("option", "message"),
    [
        ("--student_heads=0", "`student_heads`.* 0"),
        ("--student_dropout=1", r"`student_dropout`.* 1\.0"),
        ("--student_layers=0", "`student_layers`.*'0'"),
        ("--encoder_config={}", "unknown argument '--encoder_config'"),
    ],
)
def test_wrong_options_of_distill_are_named(option, message, capsys):
    assert main(["distill", "--teacher=a", "--student_init=random", option]) == 1
    assert re.search(message, capsys.readouterr().err)


def test_random_weights(problems, encoder, tmp_path, capsys):
    sizes = {"num_hidden_layers": 1, "hidden_size": 16, "num_attention_heads": 2, "intermediate_size": 16}
    argv = ["train", "--encoder_config", json.dumps(sizes), "--tokenizer", str(encoder), "--dataset", str(problems)]
    argv += ["--indexed_numbers", "--decoder_config", '{"operator_embedding_size": 8}', "--max_steps=1", "--no_test"]
    assert main([*argv, "--use_cpu", "--output_dir", str(tmp_path)]) == 0
    # Of one step there is no curve.
    left = "model, processor, run_config.yaml, run.json, data.json, metrics.json, run.log"
    assert " ".join(f"{tmp_path} has {left}".split()) in " ".join(capsys.readouterr().out.split())
    assert not (tmp_path / "learning_curve.png").exists()
    config = json.loads((tmp_path / "config.json").read_text())
    assert config["encoder_config"]["model_type"] == "mwp_student"
    assert config["decoder_config"]["operator_embedding_size"] == 8
    assert json.loads((tmp_path / "mwp_processor.json").read_text())["indexed_numbers"] is True


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        ([], "`encoder`.*`encoder_config`.*`solver`"),
        (["--encoder=a", "--solver=b"], "encoder and solver"),
        (["--encoder_config={}"], "`tokenizer`"),
        (["--encoder_config={"], "`encoder_config`.*JSON"),
        (["--encoder=/no/such/folder"], "/no/such/folder"),
        (["--encoder=a", "--encoder_layers=first"], "`encoder_layers`.*'first'"),
        (["--encoder=a", "--dropout=2"], "`dropout`.* 2"),
        (["--encoder=a", "--dataset=no_such_set"], "no_such_set"),
        (
            ["--encoder_config={}", "--tokenizer=a", "--encoder_layers=2"],
            "`encoder_layers`.*`encoder`.*`num_hidden_layers`",
        ),
        (["--encoder=a", "--max_length=0"], "`max_length`.* 3.* 0"),
        (["--encoder=a", "--min_constant_count=0"], "`min_constant_count`.* 0"),
        (["--encoder=a", "--encoder_layers=0"], "`encoder_layers`.*'0'"),
        (["--encoder=a", "--bottleneck_layers=0,2", "--bottleneck_size=0"], "`bottleneck_size`.* 0"),
        (["--encoder=a", "--test_num_beams=0"], "`test_num_beams`.* 0"),
        (["--encoder=a", "--fold=-1"], "`fold`.*-1"),
        (["--encoder=a", "--per_device_train_batch_size=0"], "`per_device_train_batch_size`.* 0"),
        (["--encoder=a", "--num_train_epochs=0"], r"`num_train_epochs`.* 0\.0"),
        (["--encoder=a", "--learning_rate=nan"], "`learning_rate`.*nan"),
        (["--encoder=a", "--student_layers=2"], "unknown argument '--student_layers'"),
        (["--encoder=a", "--output_dir=setup.cfg"], r"hf-mwp: setup\.cfg .*another output folder"),
        (["--solver=a", "--encoder_layers=2"], "`encoder_layers`.*`solver`"),
        (["--solver=a", "--tokenizer=b"], "`tokenizer`.*`solver`"),
        (["--solver=a", "--language=zh"], "`language`.*`solver`"),
        (["--solver=a", "--indexed_numbers=false"], "`indexed_numbers`.*`solver`"),
        (["--solver=a", "--max_length=512"], "`max_length`.*`solver`"),
        (["--solver=a", "--min_constant_count=5"], "`min_constant_count`.*`solver`"),
        (["--solver=a", "--decoder_config={}"], "`decoder_config`.*`solver`"),
        (["--solver=a", "--attn_implementation=sdpa"], "`attn_implementation`.*`solver`"),
    ],
)
def test_wrong_options_are_named(argv, message, tmp_path, capsys, problems, monkeypatch):
    given = [] if any("dataset" in argument for argument in argv) else ["--dataset", str(problems)]
    (tmp_path / "setup.cfg").touch()
    monkeypatch.chdir(tmp_path)
    assert main(["train", "--output_dir", str(tmp_path / "out"), *given, *argv]) == 1
    assert re.search(message, capsys.readouterr().err)
