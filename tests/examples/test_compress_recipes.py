"""The recipes that join all four methods."""

import json

import pytest

from hf_mwp.commands.main import main
from hf_mwp.commands.recipes import Recipe
from hf_mwp.runtime import load_solver
from tests.examples.scripts import EXAMPLES


RECIPES = sorted(EXAMPLES.glob("compress_*.yaml"))


@pytest.mark.slow
@pytest.mark.parametrize("path", RECIPES, ids=lambda path: path.stem)
def test_the_recipe_ends_in_a_folder_that_the_runtime_loads(path, tmp_path):
    assert main(["run", str(path), "--budget", "quick", "--use_cpu", "true", "--output_dir", str(tmp_path)]) == 0
    (folder,) = tmp_path.glob("export-*")
    record = json.loads((folder / "export.json").read_text("utf-8"))
    assert record["quantize"] == "int8" and record["equal"] == record["problems"] == 20
    (answer,) = load_solver(folder)(["Tom has 3 apples and buys 4. How many has he?"])
    assert answer["numbers"] == ["3", "4"]


@pytest.mark.parametrize("path", RECIPES, ids=lambda path: path.stem)
def test_a_family_and_targets_change_the_student_alone(path, tmp_path, demo_package):
    def stages(**changes):
        changes |= {"encoder": "all-MiniLM-L6-v2", "tokenizer": None, "use_cpu": True}
        return Recipe.from_file(path, tmp_path, budget="cpu", changes=changes).stages

    base = stages(student="base")
    kinds = {"small": {"student": "small"}, "large": {"student": "large"}, "target": {"target_ms": 3}}
    for name, changes in kinds.items():
        other = stages(**changes)
        other["pretrain"].check()
        assert other["teacher"].folder == base["teacher"].folder
        assert other["pretrain"].folder != base["pretrain"].folder
        assert other["pretrain"].options.get("target_ms") == changes.get("target_ms")
        layers = len(other["pretrain"].options["encoder_layers"].split(","))
        assert layers == (6 if name == "large" else 3)
