import shutil

import pytest

from hf_mwp.commands.main import main
from tests.damage import change_fields, change_weights, drop_weights, swap_words


TEXT = "小明有4个苹果，又买了2个，一共有几个？"


def narrow_encoder(folder):
    """Cut two rows of the embeddings, for which the tokenizer has entries, from weights and configuration."""
    num_rows = []

    def narrow(tensors):
        name = "encoder.embeddings.word_embeddings.weight"
        num_rows.append(len(tensors[name]))
        tensors[name] = tensors[name][:-2].clone()

    change_weights(folder, narrow)
    config = folder / "config.json"
    text = config.read_text("utf-8")
    config.write_text(text.replace(f'"vocab_size": {num_rows[0]}', f'"vocab_size": {num_rows[0] - 2}'), "utf-8")


DAMAGES = {
    "no tokenizer": (lambda folder: (folder / "tokenizer.json").unlink(), "tokenizer.json"),
    "empty tokenizer": (lambda folder: (folder / "tokenizer.json").write_text("{}"), "tokenizer.json"),
    "another vocabulary": (lambda folder: swap_words(folder, "果", "盒"), "tokenizer.json"),
    "missing weights": (lambda folder: drop_weights(folder, "decoder.goal_left"), "weights"),
    "unknown field": (lambda folder: change_fields(folder / "mwp_processor.json", new=1), "['new']"),
    "other symbols": (lambda folder: change_fields(folder / "mwp_processor.json", constants=["9"]), "mwp_processor"),
    "small encoder": (narrow_encoder, "encoder"),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_damaged_folder_is_named_in_one_line(solver_folder, tmp_path, damage, capsys):
    folder = shutil.copytree(solver_folder, tmp_path / "solver")
    change, message = DAMAGES[damage]
    change(folder)
    assert main(["solve", "--model", str(folder), TEXT]) == 1
    captured = capsys.readouterr()
    (line,) = captured.err.splitlines()
    assert line.startswith("hf-mwp: ")
    assert str(folder) in line
    assert message in line
    assert not captured.out
