import importlib.metadata
import json
import re
import shutil
from pathlib import Path

import pytest
import torch
import yaml
from safetensors.torch import load_file
from transformers import pipeline
from transformers.trainer_utils import TrainOutput

from hf_mwp.commands.main import main
from hf_mwp.commands.options.parsing import parse
from hf_mwp.commands.options.stages import types_of
from hf_mwp.solver.models import MwpSolver
from hf_mwp.solver.training import SolverTrainer
from hf_mwp.utils.option import option_values
from tests.commands.folders import contents, logged_names, read_json


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


def test_run_leaves_its_record(trained):
    files = "config.json model.safetensors mwp_processor.json run_config.yaml run.json run.log metrics.json data.json"
    files += " learning_curve.png trainer_state.json"
    assert contents(trained).keys() >= set(files.split())
    run = read_json(trained / "run.json")
    assert run["seed"] == 42
    assert run["libraries"]["torch"] == importlib.metadata.version("torch")
    assert run["wall_seconds"] > 0
    metrics = read_json(trained / "metrics.json")
    assert metrics["test"]["reports"]["all problems"]["num_problems"] == 9
    assert 0 <= metrics["validation"]["reports"]["all problems"]["answer_accuracy"] <= 1
    assert read_json(trained / "data.json")["used"] == {"train": 36, "validation": 8, "test": 9}
    assert "validation: " in (trained / "run.log").read_text()
    assert (trained / "learning_curve.png").read_bytes().startswith(b"\x89PNG")


def test_folder_loads_as_a_pipeline(trained):
    solve = pipeline("math-word-problem", model=str(trained), device="cpu")
    assert solve("小明有4个苹果，又买了2个")[0]["numbers"]
    assert MwpSolver.from_pretrained(trained).decoder.config.dropout == 0.1


def test_resolved_config_gives_the_same_options(trained):
    recorded = yaml.safe_load((trained / "run_config.yaml").read_text())
    argv = ["--config", str(trained / "run_config.yaml")]
    assert recorded.items() <= option_values(*parse("train", "", types_of("train"), argv)).items()


@pytest.mark.slow
def test_adapters_are_trained_resumed_and_merged(problems, encoder, tmp_path, output_of, error_of):
    options = {"encoder": str(encoder), "dataset": str(problems), "lora_rank": 4, "lora_alpha": 8, "save_steps": 1}
    config = tmp_path / "lora.yaml"
    config.write_text(yaml.safe_dump(options | {"lora_targets": ["query"], "test": False, "max_steps": 2}))
    run = tmp_path / "run"
    argv = ["train", "--config", config, "--output_dir", run, *SMALL]
    assert re.search("'quary'.* query, key, value", error_of(*argv, "--lora_targets=quary"))
    output = output_of(*argv)
    metrics = read_json(run / "metrics.json")
    assert f"{metrics['trained_parameters']:,} of " in output
    num_parameters = sum(parameter.numel() for parameter in MwpSolver.from_pretrained(run).parameters())
    assert metrics["parameters"] == num_parameters > metrics["trained_parameters"]
    weights = load_file(run / "model.safetensors")
    shutil.rmtree(run / "checkpoint-2")
    assert "lora_rank: 4 -> 2" in error_of(*argv, "--resume", "--lora_rank=2")
    output_of(*argv, "--resume")
    resumed_weights = load_file(run / "model.safetensors")
    assert all(torch.equal(resumed_weights[name], value) for name, value in weights.items())


@pytest.mark.slow
def test_run_resumes_from_the_checkpoint_before_the_disk_was_full(
    problems, solver_folder, tmp_path, monkeypatch, error_of
):
    save = torch.save

    def save_until_full(content, file, *args, **kwargs):
        if "checkpoint-2" in str(file):
            Path(file).write_bytes(b"PK")
            raise RuntimeError("[enforce fail at inline_container.cc:672] . unexpected pos 576 vs 534")
        return save(content, file, *args, **kwargs)

    argv = ["train", "--dataset", str(problems), "--solver", str(solver_folder), "--output_dir", str(tmp_path), *SMALL]
    argv += ["--save_steps=1", "--save_strategy=steps", "--no_test", "--max_steps=2"]
    with monkeypatch.context() as patch:
        patch.setattr(torch, "save", save_until_full)
        assert re.search("cannot be written to .*checkpoint-2", error_of(*argv))
    assert main([*argv, "--resume"]) == 0
    record = read_json(tmp_path / "run.json")
    assert record["resumed_from"].endswith("checkpoint-1")
    assert len(record["earlier_starts"]) == 1


@pytest.mark.slow
def test_files_of_the_old_model_are_removed_with_it(trained, tmp_path, monkeypatch):
    run = shutil.copytree(trained, tmp_path / "run")
    (run / "plausibility.json").write_text("{}")
    argv = ["train", "--config", str(run / "run_config.yaml"), "--output_dir", str(run), "--no-test", "--overwrite"]
    monkeypatch.setattr(SolverTrainer, "train", lambda *args, **kwargs: TrainOutput(0, 0.0, {}))
    assert main([*argv, "--load_best_model_at_end=false", "--seed=1"]) == 0
    assert not (run / "plausibility.json").exists()
    assert contents(run)["model.safetensors"] != contents(trained)["model.safetensors"]


@pytest.mark.slow
def test_finished_run_resumes_for_more_epochs(trained, tmp_path):
    run = shutil.copytree(trained, tmp_path / "run")
    argv = ["train", "--config", str(run / "run_config.yaml"), "--resume", "--num_train_epochs=3", "--no-test"]
    assert main([*argv, "--output_dir", str(run)]) == 0
    assert read_json(run / "trainer_state.json")["epoch"] == 3.0


@pytest.mark.slow
def test_student_is_distilled_from_cached_outputs(trained, problems, tmp_path):
    argv = ["distill", "--teacher", str(trained), "--student_layers=1", "--dataset", str(problems), *SMALL]
    argv += ["--cache_teacher_outputs", "--eval_strategy=epoch", "--logging_steps=2", "--num_train_epochs=1"]
    assert main([*argv, "--output_dir", str(tmp_path)]) == 0
    num_cached, num_rows = re.search(r"teacher cache: (\d+) of (\d+)", (tmp_path / "run.log").read_text()).groups()
    assert num_cached == num_rows
    assert len(list((tmp_path / "teacher_cache").glob("*/manifest.json"))) == 1
    assert MwpSolver.from_pretrained(tmp_path).config.num_hidden_layers == 1
    assert "loss_soft" in logged_names(tmp_path)


@pytest.mark.slow
def test_solver_with_random_weights_is_trained(problems, encoder, tmp_path, output_of):
    sizes = {"num_hidden_layers": 1, "hidden_size": 16, "num_attention_heads": 2, "intermediate_size": 16}
    argv = ["train", "--encoder_config", json.dumps(sizes), "--tokenizer", encoder, "--dataset", problems]
    argv += ["--indexed_numbers", "--decoder_config", '{"operator_embedding_size": 8}', "--max_steps=1", "--no_test"]
    output = output_of(*argv, "--use_cpu", "--output_dir", tmp_path)
    # One step has no curve.
    assert f"{tmp_path} has model, processor, run_config.yaml, run.json, data.json, metrics.json, run.log" in output
    assert not (tmp_path / "learning_curve.png").exists()
    config = read_json(tmp_path / "config.json")
    assert config["encoder_config"]["model_type"] == "mwp_student"
    assert config["decoder_config"]["operator_embedding_size"] == 8
    assert read_json(tmp_path / "mwp_processor.json")["indexed_numbers"] is True


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        (["distill"], "`teacher`"),
        (["distill", "--teacher=a", "--student_init=random", "--student_heads=0"], "`student_heads`.* 0"),
        (["distill", "--teacher=a", "--student_init=random", "--student_dropout=1"], r"`student_dropout`.* 1\.0"),
        (["distill", "--teacher=a", "--encoder_config={}"], "unknown argument '--encoder_config'"),
        (["train"], "`encoder`.*`encoder_config`.*`solver`"),
        (["train", "--encoder=a", "--solver=b"], "encoder and solver"),
        (["train", "--encoder_config={}"], "`tokenizer`"),
        (["train", "--encoder_config={"], "`encoder_config`.*JSON"),
        (["train", "--encoder=/no/such/folder"], "/no/such/folder"),
        (["train", "--encoder=a", "--encoder_layers=first"], "`encoder_layers`.*'first'"),
        (["train", "--encoder=a", "--dataset=no_such_set"], "no_such_set"),
        (["train", "--encoder_config={}", "--tokenizer=a", "--encoder_layers=2"], "`encoder_layers`.*`encoder`"),
        (["train", "--encoder=a", "--max_length=0"], "`max_length`.* 3.* 0"),
        (["train", "--encoder=a", "--bottleneck_layers=0,2", "--bottleneck_size=0"], "`bottleneck_size`.* 0"),
        (["train", "--encoder=a", "--learning_rate=nan"], "`learning_rate`.*nan"),
        (["train", "--solver=a", "--encoder_layers=2"], "`encoder_layers`.*`solver`"),
        (["train", "--solver=a", "--indexed_numbers=false"], "`indexed_numbers`.*`solver`"),
    ],
)
def test_wrong_options_are_named(argv, message, tmp_path, error_of, problems):
    command, *options = argv
    error = error_of(command, "--dataset", problems, "--output_dir", tmp_path / "out", *options)
    assert re.search(message, error)
