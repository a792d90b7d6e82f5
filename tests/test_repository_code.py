"""Python files in a model's folder are never run by the package on its own account."""

import ast
import json
import shutil
from pathlib import Path

import pytest

from hf_mwp import MwpProcessor, MwpSolver
from hf_mwp.commands.building import load_solver
from hf_mwp.commands.building.encoder import load_encoder
from hf_mwp.commands.building.seq2seq import load_any
from hf_mwp.commands.main import main
from hf_mwp.compress.trainers import ParameterMixingCallback
from hf_mwp.solver.models import MwpSolverConfig
from hf_mwp.utils.usage_error import UsageError
from tests.tiny import tiny_processor


ROOT = Path(__file__).parents[1]
CODE = """
from pathlib import Path

Path({marker!r}).touch()

from transformers import BertConfig, BertModel, PreTrainedTokenizerFast


class OwnConfig(BertConfig):
    model_type = "own"


class OwnModel(BertModel):
    config_class = OwnConfig


class OwnTokenizer(PreTrainedTokenizerFast):
    pass
"""


@pytest.fixture
def marker(tmp_path, monkeypatch):
    """A file that the code of a folder makes when it is run; standard input answers every question with yes."""
    monkeypatch.setattr("builtins.input", lambda *_: "y")
    monkeypatch.setattr("transformers.dynamic_module_utils.HF_MODULES_CACHE", str(tmp_path / "modules"))
    return tmp_path / "the-code-was-run"


def add_code(folder, marker, name, fields):
    """Add code to a folder, and fields to one of its files that name the code."""
    (folder / "own.py").write_text(CODE.format(marker=str(marker)))
    content = json.loads((folder / name).read_text())
    (folder / name).write_text(json.dumps(content | fields))


@pytest.fixture
def model_folder(encoder, marker, tmp_path):
    """A BERT whose folder says that it needs its own classes."""
    folder = shutil.copytree(encoder, tmp_path / "model")
    auto_map = {"AutoConfig": "own.OwnConfig", "AutoModel": "own.OwnModel"}
    add_code(folder, marker, "config.json", {"model_type": "own", "auto_map": auto_map})
    return folder


@pytest.fixture
def tokenizer_folder(marker, tmp_path):
    """A processor whose tokenizer says the same."""
    folder = tmp_path / "processor"
    tiny_processor().save_pretrained(folder)
    auto_map = {"AutoTokenizer": [None, "own.OwnTokenizer"]}
    add_code(folder, marker, "tokenizer_config.json", {"tokenizer_class": "OwnTokenizer", "auto_map": auto_map})
    return folder


def test_code_of_a_tokenizer_is_run_only_on_request(tokenizer_folder, marker):
    with pytest.raises(UsageError, match=r"Python code.*trust_remote_code=True"):
        MwpProcessor.from_pretrained(tokenizer_folder)
    assert not marker.exists()
    MwpProcessor.from_pretrained(tokenizer_folder, trust_remote_code=True)
    assert marker.exists()


@pytest.mark.parametrize(
    ("load", "message"),
    [
        (lambda folder: load_encoder(folder, None), r"Python code.*trust_remote_code=True"),
        (load_solver, None),
        (lambda folder: MwpSolver.from_encoder_decoder_pretrained(folder, tiny_processor()), None),
        (ParameterMixingCallback, None),
        (load_any, None),
    ],
    ids=["encoder", "solver", "decoder on an encoder", "mixing", "any model"],
)
def test_code_of_a_model_is_not_run(load, message, model_folder, marker):
    with pytest.raises(ValueError, match=message):
        load(str(model_folder))
    assert not marker.exists()


@pytest.mark.parametrize("name", ["encoder_config", "decoder_config"])
def test_code_of_a_model_in_a_solver_is_not_run(name, model_folder, marker):
    """A type that Transformers has a configuration for, and no `AutoModel`, may name code for the model."""
    sizes = {"hidden_size": 312, "encoder_hidden_size": 312}
    fields = {"model_type": "align_text_model", "auto_map": {"AutoModel": f"{model_folder}--own.OwnModel"}}
    with pytest.raises(ValueError):
        MwpSolver(MwpSolverConfig(**{name: fields | sizes}))
    assert not marker.exists()


@pytest.mark.parametrize(
    "command",
    [
        "heads --model={model} --dataset={problems}",
        "solve --model={model} 1",
        "train --encoder={model} --dataset={problems} --output_dir={output}",
        "mix --pretrained={model} --distilled={solver} --output_dir={output}",
    ],
)
def test_commands_name_the_folder(command, model_folder, marker, problems, solver_folder, tmp_path, capsys):
    paths = {"model": model_folder, "problems": problems, "solver": solver_folder, "output": tmp_path / "out"}
    assert main(command.format(**paths).split()) == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert str(model_folder) in line
    assert not marker.exists()


@pytest.mark.parametrize("folder", ["hf_mwp", "examples"])
def test_every_call_of_an_auto_class_decides(folder):
    """Without `trust_remote_code`, Transformers asks on standard input, and takes a line of a pipe for the answer."""
    undecided = []
    for path in sorted((ROOT / folder).rglob("*.py")):
        text = path.read_text(encoding="utf-8")
        if "from_pretrained" not in text and "from_config" not in text:
            continue
        for node in ast.walk(ast.parse(text)):
            if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
                continue
            is_auto = ast.unparse(node.func.value).lower().startswith("auto")
            is_decided = any(keyword.arg == "trust_remote_code" for keyword in node.keywords)
            if is_auto and node.func.attr in ("from_pretrained", "from_config") and not is_decided:
                undecided.append(f"{path.relative_to(ROOT)}:{node.lineno}")
    assert not undecided
