import shutil

import pytest

from hf_mwp.commands.building import load_solver
from hf_mwp.commands.main import main
from tests.damage import change_fields, change_weights, drop_weights, swap_words


TEXT = "小明有4个苹果，又买了2个，一共有几个？"


@pytest.fixture
def folder(solver_folder, tmp_path):
    return shutil.copytree(solver_folder, tmp_path / "solver")


def no_tokenizer(folder):
    (folder / "tokenizer.json").unlink()


def empty_tokenizer(folder):
    (folder / "tokenizer.json").write_text("{}")


def narrow_encoder(folder):
    """An encoder with fewer rows than the tokenizer has entries, and weights that fit it."""
    name = "encoder.embeddings.word_embeddings.weight"

    def narrow(tensors):
        tensors[name] = tensors[name][:-2].clone()

    change_weights(folder, narrow)
    config = folder / "config.json"
    rows = load_solver_rows(folder)
    config.write_text(config.read_text("utf-8").replace(f'"vocab_size": {rows + 2}', f'"vocab_size": {rows}'), "utf-8")


def load_solver_rows(folder):
    from safetensors.torch import load_file

    return len(load_file(folder / "model.safetensors")["encoder.embeddings.word_embeddings.weight"])


DAMAGES = {
    "no tokenizer": (no_tokenizer, "tokenizer.json"),
    "empty tokenizer": (empty_tokenizer, "tokenizer.json"),
    "another vocabulary": (lambda f: swap_words(f, "果", "盒"), "tokenizer.json"),
    "missing weights": (lambda f: drop_weights(f, "decoder.goal_left"), "weights"),
    "unknown field": (lambda f: change_fields(f / "mwp_processor.json", new=1), "['new']"),
    "other symbols": (lambda f: change_fields(f / "mwp_processor.json", constants=["9"]), "mwp_processor.json"),
    "small encoder": (narrow_encoder, "encoder"),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_damaged_and_foreign_folders_are_one_line(folder, damage, capsys):
    change, message = DAMAGES[damage]
    change(folder)
    assert main(["solve", "--model", str(folder), TEXT]) == 1
    captured = capsys.readouterr()
    (line,) = captured.err.splitlines()
    assert line.startswith("hf-mwp: ") and str(folder) in line and message in line
    assert not captured.out


def test_a_whole_folder_loads(solver_folder):
    model, processor = load_solver(str(solver_folder))
    processor.check_model(model)
