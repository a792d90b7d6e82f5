"""The recipes that join all four methods."""

import json

import pytest

from hf_mwp.commands.main import main
from hf_mwp.commands.recipes import Recipe
from hf_mwp.runtime import load_solver
from tests.examples.scripts import EXAMPLES
from tests.slow_parameters import slow_after


# The other file has options of a script.
RECIPES = sorted({*EXAMPLES.glob("compress_*.yaml")} - {EXAMPLES / "compress_llm.yaml"})


@pytest.mark.slow
@pytest.mark.parametrize("path", RECIPES, ids=lambda path: path.stem)
def test_recipe_ends_in_a_folder_that_the_runtime_loads(path, tmp_path):
    assert main(["run", str(path), "--budget", "quick", "--use_cpu", "true", "--output_dir", str(tmp_path)]) == 0
    (folder,) = tmp_path.glob("export-*")
    record = json.loads((folder / "export.json").read_text("utf-8"))
    assert record["quantize"] == "int8" and record["equal"] == record["problems"] == 20
    (answer,) = load_solver(folder)(["Tom has 3 apples and buys 4. How many has he?"])
    assert answer["numbers"] == ["3", "4"]


@pytest.mark.parametrize(
    ("changes", "num_layers"),
    slow_after(1, [({"student": "small"}, 3), ({"student": "large"}, 6), ({"target_ms": 3}, 3)]),
    ids=["small", "large", "target"],
)
def test_size_of_the_student_changes_its_stages_alone(changes, num_layers, tmp_path, demo_package):
    path = EXAMPLES / "compress_math23k.yaml"
    options = {"encoder": "all-MiniLM-L6-v2", "tokenizer": None, "use_cpu": True}
    base = Recipe.from_file(path, tmp_path, budget="cpu", changes=options | {"student": "base"}).stages
    stages = Recipe.from_file(path, tmp_path, budget="cpu", changes=options | changes).stages
    stages["pretrain"].check()
    assert stages["teacher"].folder == base["teacher"].folder
    assert stages["pretrain"].folder != base["pretrain"].folder
    assert stages["pretrain"].options.get("target_ms") == changes.get("target_ms")
    assert len(stages["pretrain"].options["encoder_layers"].split(",")) == num_layers
