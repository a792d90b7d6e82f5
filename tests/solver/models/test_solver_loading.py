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


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    """Two folders of the same solver, one with its weights in several files."""
    folder = tmp_path_factory.mktemp("solvers")
    solver = tiny_solver(tiny_processor(max_length=64))
    solver.save_pretrained(folder / "whole")
    solver.save_pretrained(folder / "shards", max_shard_size="20KB")
    return folder


@pytest.fixture
def folder(saved, tmp_path):
    return shutil.copytree(saved / "whole", tmp_path / "solver")


@pytest.fixture
def shards(saved, tmp_path):
    return shutil.copytree(saved / "shards", tmp_path / "shards")


def refusal(folder, load=MwpSolver.from_pretrained, **kwargs):
    with pytest.raises(SolverFolderError) as error:
        load(folder, **kwargs)
    assert str(folder) in str(error.value) and "\n" not in str(error.value)
    return str(error.value)


@pytest.mark.parametrize("load", [MwpSolver.from_pretrained, AutoModel.from_pretrained])
def test_missing_weights_are_refused(folder, load):
    drop_weights(folder, "decoder.goal_left")
    message = refusal(folder, load)
    assert re.search("model.safetensors .* 2 weights", message) and "decoder.goal_left" in message


def test_missing_weights_of_the_encoder_are_refused(folder):
    drop_weights(folder, "encoder.embeddings.LayerNorm.weight")
    assert re.search(r"\b1 weight\b.*encoder.embeddings.LayerNorm.weight", refusal(folder))


def test_many_names_are_shortened(folder):
    drop_weights(folder, "encoder.")
    message = refusal(folder)
    assert message.count("encoder.") == 3 and "..." in message


def test_weights_of_other_shapes_are_refused(folder):
    change_weights(folder, lambda tensors: tensors.update({"decoder.operator_scorer.weight": torch.zeros(3, 32)}))
    message = refusal(folder)
    assert re.search(r"decoder.operator_scorer.weight.*\(3, 32\).*model.safetensors.*\(5, 32\).*config.json", message)
    model = MwpSolver.from_pretrained(folder, ignore_mismatched_sizes=True)
    assert model.decoder.operator_scorer.weight.shape == (5, 32)


def test_weights_without_a_place_are_refused(folder):
    change_weights(folder, lambda tensors: tensors.update({"decoder.extra.weight": torch.zeros(3)}))
    assert re.search("model.safetensors .*decoder.extra.weight", refusal(folder))


@pytest.mark.parametrize("content", [b"", b"version https://git-lfs.github.com/spec/v1", None])
def test_a_file_that_is_no_safetensors_is_named(folder, content):
    path = folder / "model.safetensors"
    cut(path) if content is None else path.write_bytes(content)
    assert "model.safetensors is damaged" in refusal(folder)


def test_the_damaged_one_of_several_files_is_named(shards):
    second = sorted(shards.glob("model-*"))[1]
    cut(second)
    assert f"{second.name} is damaged" in refusal(shards)
    second.unlink()
    assert f"no weights ({second.name})" in refusal(shards)


@pytest.mark.parametrize("content", ["{", "[]", "{}", '{"weight_map": {"a'])
def test_a_damaged_index_is_named(shards, content):
    (shards / "model.safetensors.index.json").write_text(content)
    assert "model.safetensors.index.json" in refusal(shards)


def test_a_weight_that_the_index_has_and_its_file_has_not(shards):
    index = shards / "model.safetensors.index.json"
    content = json.loads(index.read_text())
    first = sorted(shards.glob("model-*"))[0]
    content["weight_map"] = {name: file for name, file in content["weight_map"].items() if file != first.name}
    index.write_text(json.dumps(content))
    assert "model.safetensors.index.json" in refusal(shards)


def test_no_weights(folder):
    (folder / "model.safetensors").unlink()
    assert "no weights (model.safetensors)" in refusal(folder)


def test_another_kind_of_model_is_refused(tmp_path):
    BertModel(tiny_bert_config()).save_pretrained(tmp_path)
    message = refusal(tmp_path)
    assert re.search("'bert'.*'mwp_solver'", message)
    assert f"hf-mwp train --encoder {tmp_path}" in message


def test_what_is_wrong_with_the_call_and_not_with_the_folder_stays_what_it_is(folder):
    with pytest.raises(TypeError, match="no_such_option"):
        MwpSolver.from_pretrained(folder, no_such_option=1)
    with pytest.raises(OSError, match="nowhere"):
        MwpSolver.from_pretrained(folder / "nowhere")


def test_bottlenecks_that_are_asked_for_are_new_and_those_that_are_not_are_left(folder, tmp_path):
    processor = tiny_processor(max_length=64)
    loaded = AutoModel.from_pretrained(folder, bottleneck_layers=[1], bottleneck_size=4)
    assert list(loaded.bottlenecks) == ["1"]
    tiny_solver(processor, bottleneck_layers=[1, 2], bottleneck_size=4).save_pretrained(tmp_path / "narrow")
    assert (
        MwpSolver.from_pretrained(tmp_path / "narrow", bottleneck_layers=[], bottleneck_size=None).bottlenecks is None
    )
    # Its own ones are weights like all others.
    drop_weights(tmp_path / "narrow", "bottlenecks.2")
    assert "4 weights" in refusal(tmp_path / "narrow")


def test_loading_info_is_given_as_ever(folder):
    model, info = MwpSolver.from_pretrained(folder, output_loading_info=True)
    assert isinstance(model, MwpSolver) and not any(info.values())


def test_a_solver_from_a_config_and_weights():
    solver = tiny_solver(tiny_processor()).eval()
    loaded = MwpSolver.from_pretrained(None, config=solver.config, state_dict=solver.state_dict())
    for name, value in solver.state_dict().items():
        assert torch.equal(loaded.state_dict()[name], value), name
    weights = solver.state_dict()
    for kwargs in ({}, {"config": solver.config}, {"state_dict": weights}, {"config": "x", "state_dict": weights}):
        with pytest.raises(ValueError, match="`config`.*`MwpSolverConfig`.*`state_dict`"):
            MwpSolver.from_pretrained(None, **kwargs)
    partial = {name: value for name, value in weights.items() if not name.startswith("decoder.")}
    with pytest.raises(SolverFolderError, match="state_dict lacks .*decoder"):
        MwpSolver.from_pretrained(None, config=solver.config, state_dict=partial)
    with pytest.raises(SolverFolderError, match="state_dict has 1 weight .*extra"):
        MwpSolver.from_pretrained(None, config=solver.config, state_dict=weights | {"extra": torch.zeros(1)})
