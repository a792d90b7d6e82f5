from pathlib import Path

import pytest
import yaml

from hf_mwp.cli.data_arguments import DataArguments
from hf_mwp.cli.distill import StudentArguments
from hf_mwp.cli.evaluate import EvaluateArguments
from hf_mwp.cli.model_arguments import ModelArguments
from hf_mwp.cli.parsing import parse
from hf_mwp.cli.run_arguments import RunArguments
from hf_mwp.trainers import DistillationConfig, SolverConfig


EXAMPLES = Path(__file__).parents[2] / "examples"
TYPES = {
    "solver": [DataArguments, ModelArguments, RunArguments, SolverConfig],
    "distill": [DataArguments, StudentArguments, RunArguments, DistillationConfig],
    "evaluate": [EvaluateArguments, DataArguments],
}


# Recipes are several commands; tests/cli/test_recipe.py reads them.
COMMANDS = [path for path in sorted(EXAMPLES.glob("*.yaml")) if not path.name.startswith("compact_")]


@pytest.mark.parametrize("path", COMMANDS, ids=lambda path: path.name)
def test_example_is_read(path):
    _, values = parse(path.stem, "", TYPES[path.stem.split("_")[0]], ["--config", str(path)])
    given = yaml.safe_load(path.read_text(encoding="utf-8"))
    assert given.items() <= {name: values[name] for name in given}.items()
