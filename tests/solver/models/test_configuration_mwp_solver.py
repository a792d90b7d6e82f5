import json

import pytest
import torch
from transformers import AutoConfig, AutoModel

from hf_mwp.solver.models import MwpSolver, MwpSolverConfig
from hf_mwp.solver.models.mwp_solver import save_solver_code
from tests.fresh_python import WITHOUT_HF_MWP, run_fresh


# Loads a solver with Auto classes and a pipeline, without `import hf_mwp`, and saves it again.
LOAD_AND_SOLVE = """
import sys
from transformers import AutoConfig, AutoModel, pipeline

folder, target, text = sys.argv[1:]
config = AutoConfig.from_pretrained(folder, trust_remote_code=True)
model = AutoModel.from_pretrained(folder, trust_remote_code=True)
print(type(config))
print(type(model))
model.save_pretrained(target)
solver = pipeline("math-word-problem", model=folder, trust_remote_code=True, device="cpu")
print(solver(text)[0]["numbers"])
"""
# Prints the errors without `hf_mwp`.
FAIL = """
from transformers import AutoConfig, AutoModel

for auto_class in (AutoConfig, AutoModel):
    try:
        auto_class.from_pretrained(sys.argv[1], trust_remote_code=True)
    except ImportError as error:
        print(error)
"""


@pytest.mark.slow
def test_installed_package_needs_no_import(solver_folder, tmp_path):
    target = tmp_path / "target"
    (lines, warnings), (errors, _) = run_fresh(
        tmp_path,
        (LOAD_AND_SOLVE, solver_folder, target, "小明有4个苹果，又买了2个，一共有几个？"),
        (WITHOUT_HF_MWP + FAIL, solver_folder),
    )
    package = "hf_mwp.solver.models.mwp_solver"
    assert lines == [
        f"<class '{package}.configuration_mwp_solver.MwpSolverConfig'>",
        f"<class '{package}.modeling_mwp_solver.MwpSolver'>",
        "['4', '2']",
    ]
    assert "using a model of type" not in warnings
    assert [path.name for path in target.glob("*.py")] == ["use_hf_mwp.py"]
    weights = AutoModel.from_pretrained(target).state_dict()
    expected = AutoModel.from_pretrained(solver_folder).state_dict()
    torch.testing.assert_close(weights, expected, rtol=0, atol=0)
    assert len(errors) == 2
    assert all("`pip install hf-mwp`, then `import hf_mwp`" in error for error in errors)


def test_folder_of_a_solver_names_its_code(solver_folder, tmp_path):
    auto_map = {"AutoConfig": "use_hf_mwp.MwpSolverConfig", "AutoModel": "use_hf_mwp.MwpSolver"}
    # The code of a folder is not part of the config.
    assert "auto_map" not in AutoConfig.from_pretrained(solver_folder).to_dict()
    MwpSolver.from_pretrained(solver_folder).save_pretrained(tmp_path)
    written = (tmp_path / "config.json").read_text("utf-8")
    assert json.loads(written)["auto_map"] == auto_map
    save_solver_code(tmp_path)
    assert (tmp_path / "config.json").read_text("utf-8") == written
    MwpSolverConfig.register_for_auto_class()
    assert MwpSolverConfig._auto_class is None
