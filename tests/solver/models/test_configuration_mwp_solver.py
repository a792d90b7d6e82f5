import json

import torch
from transformers import AutoConfig, AutoModel

from hf_mwp.solver.models import MwpSolver, MwpSolverConfig
from hf_mwp.solver.models.mwp_solver import save_solver_code
from tests.fresh_python import WITHOUT_HF_MWP, run_fresh


# Loads with an Auto class, without `import hf_mwp`; says what came of it, and saves it again.
LOAD = """
import sys
import transformers

folder, target, *names = sys.argv[1:]
for name in names:
    try:
        loaded = getattr(transformers, name).from_pretrained(folder, trust_remote_code=True)
    except ImportError as error:
        print(f"{name}: {error}")
    else:
        print(f"{name}: {type(loaded).__module__}.{type(loaded).__name__}")
        loaded.save_pretrained(target)
"""
SOLVE = """
import sys
from transformers import pipeline

solver = pipeline("math-word-problem", model=sys.argv[1], trust_remote_code=True, device="cpu")
print(solver(sys.argv[2])[0]["numbers"])
"""


def test_where_hf_mwp_is_installed_no_import_is_needed(solver_folder, tmp_path):
    again, problem = tmp_path / "again", "小明有4个苹果，又买了2个，一共有几个？"
    (shown, errors), (solved, _), (refused, _) = run_fresh(
        tmp_path,
        (LOAD, solver_folder, again, "AutoConfig", "AutoTokenizer", "AutoModel"),
        (SOLVE, solver_folder, problem),
        (WITHOUT_HF_MWP + LOAD, solver_folder, tmp_path / "never", "AutoConfig", "AutoModel"),
    )
    assert shown[0] == "AutoConfig: hf_mwp.solver.models.mwp_solver.configuration_mwp_solver.MwpSolverConfig"
    assert shown[2] == "AutoModel: hf_mwp.solver.models.mwp_solver.modeling_mwp_solver.MwpSolver"
    assert "using a model of type" not in errors
    # The second folder is as the first: one file of code, and the same weights.
    assert [path.name for path in again.glob("*.py")] == ["use_hf_mwp.py"]
    loaded = AutoModel.from_pretrained(again)
    for name, value in AutoModel.from_pretrained(solver_folder).state_dict().items():
        assert torch.equal(loaded.state_dict()[name], value)
    # The pipeline needs no import either.
    assert solved == ["['4', '2']"]
    # Where it is not installed, the error says so.
    assert len(refused) == 2
    assert all("`pip install hf-mwp`, then `import hf_mwp`" in line for line in refused)


def test_a_folder_of_a_solver_names_its_code(solver_folder, tmp_path):
    first = (solver_folder / "config.json").read_text("utf-8")
    assert json.loads(first)["auto_map"] == {
        "AutoConfig": "use_hf_mwp.MwpSolverConfig",
        "AutoModel": "use_hf_mwp.MwpSolver",
    }
    config = AutoConfig.from_pretrained(solver_folder)
    # Where a model was loaded from does not change what it is.
    assert not hasattr(config, "auto_map") and "auto_map" not in config.to_dict()
    MwpSolver.from_pretrained(solver_folder).save_pretrained(tmp_path)
    again = (tmp_path / "config.json").read_text("utf-8")
    assert json.loads(again)["auto_map"] == json.loads(first)["auto_map"]
    save_solver_code(tmp_path)
    assert (tmp_path / "config.json").read_text("utf-8") == again
    MwpSolverConfig.register_for_auto_class()
    assert MwpSolverConfig._auto_class is None
