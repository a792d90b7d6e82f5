import json
import re
import shutil

import pytest
import torch
from transformers import AutoModel, BertModel

from hf_mwp.solver.models import MwpSolver
from hf_mwp.solver.models.mwp_solver import SolverFolderError
from tests.damage import change_weights, cut, drop_weights
from tests.tiny import tiny_bert_config, tiny_processor, tiny_solver


INDEX = "model.safetensors.index.json"


@pytest.fixture(scope="module")
def solver():
    return tiny_solver(tiny_processor(max_length=64))


@pytest.fixture(scope="module")
def saved(solver, tmp_path_factory):
    """Two folders of the same solver, one with its weights in several files."""
    folder = tmp_path_factory.mktemp("solvers")
    solver.save_pretrained(folder / "whole")
    solver.save_pretrained(folder / "shards", max_shard_size="20KB")
    return folder


@pytest.fixture
def folder(saved, tmp_path):
    return shutil.copytree(saved / "whole", tmp_path / "solver")


@pytest.fixture
def shards(saved, tmp_path):
    return shutil.copytree(saved / "shards", tmp_path / "shards")


def check_refused(folder, message, load=MwpSolver.from_pretrained):
    """Check that the error names the folder and matches the message."""
    with pytest.raises(SolverFolderError, match=message) as error:
        load(folder)
    assert str(folder) in str(error.value)
    assert "\n" not in str(error.value)


def add_weight(folder, name, *shape):
    change_weights(folder, lambda tensors: tensors.update({name: torch.zeros(shape)}))


@pytest.mark.parametrize("load", [MwpSolver.from_pretrained, AutoModel.from_pretrained])
def test_missing_weights_are_refused(folder, load):
    drop_weights(folder, "decoder.goal_left")
    check_refused(folder, "model.safetensors .* 2 weights.*decoder.goal_left", load)


def test_missing_weights_of_the_encoder_are_refused(folder):
    drop_weights(folder, "encoder.embeddings.LayerNorm.weight")
    check_refused(folder, r"\b1 weight\b.*encoder.embeddings.LayerNorm.weight")


def test_three_of_many_missing_weights_are_named(folder):
    drop_weights(folder, "encoder.")
    with pytest.raises(SolverFolderError) as error:
        MwpSolver.from_pretrained(folder)
    assert str(error.value).count("encoder.") == 3
    assert "..." in str(error.value)


def test_weights_of_other_shapes_are_refused(folder):
    name = "decoder.operator_scorer.weight"
    add_weight(folder, name, 3, 32)
    check_refused(folder, rf"{name}.*\(3, 32\).*model.safetensors.*\(5, 32\).*config.json")
    model = MwpSolver.from_pretrained(folder, ignore_mismatched_sizes=True)
    assert model.decoder.operator_scorer.weight.shape == (5, 32)


def test_unknown_weights_are_refused(folder):
    add_weight(folder, "decoder.extra.weight", 3)
    check_refused(folder, "model.safetensors .*decoder.extra.weight")


@pytest.mark.parametrize("content", [b"", b"version https://git-lfs.github.com/spec/v1", None])
def test_damaged_file_is_named(folder, content):
    path = folder / "model.safetensors"
    if content is None:
        cut(path)
    else:
        path.write_bytes(content)
    check_refused(folder, "model.safetensors is damaged")


def test_damaged_or_missing_shard_is_named(shards):
    shard = sorted(shards.glob("model-*"))[1]
    cut(shard)
    check_refused(shards, f"{shard.name} is damaged")
    shard.unlink()
    check_refused(shards, re.escape(f"no weights ({shard.name})"))


@pytest.mark.parametrize("content", ["{", "[]", "{}", '{"weight_map": {"a'])
def test_damaged_index_is_named(shards, content):
    (shards / INDEX).write_text(content)
    check_refused(shards, INDEX)


def test_index_without_some_weights_is_named(shards):
    content = json.loads((shards / INDEX).read_text())
    shard = sorted(shards.glob("model-*"))[0].name
    content["weight_map"] = {name: file for name, file in content["weight_map"].items() if file != shard}
    (shards / INDEX).write_text(json.dumps(content))
    check_refused(shards, INDEX)


def test_missing_file_is_named(folder):
    (folder / "model.safetensors").unlink()
    check_refused(folder, r"no weights \(model.safetensors\)")


def test_another_model_is_refused(tmp_path):
    BertModel(tiny_bert_config()).save_pretrained(tmp_path)
    check_refused(tmp_path, f"'bert'.*'mwp_solver'.*hf-mwp train --encoder {tmp_path}")


def test_errors_of_the_call_are_not_changed(folder):
    with pytest.raises(TypeError, match="no_such_option"):
        MwpSolver.from_pretrained(folder, no_such_option=1)
    with pytest.raises(OSError, match="nowhere"):
        MwpSolver.from_pretrained(folder / "nowhere")


def test_bottlenecks_can_be_added_or_left_out(folder, tmp_path):
    loaded = AutoModel.from_pretrained(folder, bottleneck_layers=[1], bottleneck_size=4)
    assert list(loaded.bottlenecks) == ["1"]
    narrow = tmp_path / "narrow"
    tiny_solver(tiny_processor(), bottleneck_layers=[1, 2], bottleneck_size=4).save_pretrained(narrow)
    loaded = MwpSolver.from_pretrained(narrow, bottleneck_layers=[], bottleneck_size=None)
    assert loaded.bottlenecks is None
    # Those of its config are weights like all others.
    drop_weights(narrow, "bottlenecks.2")
    check_refused(narrow, "4 weights")


def test_loading_info_is_returned(folder):
    model, info = MwpSolver.from_pretrained(folder, output_loading_info=True)
    assert isinstance(model, MwpSolver)
    assert not any(info.values())


def test_solver_is_loaded_from_a_config_and_weights(solver):
    weights = solver.state_dict()
    loaded = MwpSolver.from_pretrained(None, config=solver.config, state_dict=weights)
    torch.testing.assert_close(loaded.state_dict(), weights, rtol=0, atol=0)
    for kwargs in ({}, {"config": solver.config}, {"state_dict": weights}, {"config": "x", "state_dict": weights}):
        with pytest.raises(ValueError, match="`config`.*`MwpSolverConfig`.*`state_dict`"):
            MwpSolver.from_pretrained(None, **kwargs)
    encoder_weights = {name: value for name, value in weights.items() if not name.startswith("decoder.")}
    with pytest.raises(SolverFolderError, match="state_dict lacks .*decoder"):
        MwpSolver.from_pretrained(None, config=solver.config, state_dict=encoder_weights)
    with pytest.raises(SolverFolderError, match="state_dict has 1 weight .*extra"):
        MwpSolver.from_pretrained(None, config=solver.config, state_dict=weights | {"extra": torch.zeros(1)})
