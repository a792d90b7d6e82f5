"""Python files in a model's folder are never run by the package on its own account."""

import ast
import json
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


@pytest.fixture
def model_folder(encoder, marker, tmp_path):
    """A BERT whose folder says that it needs its own classes."""
    folder = tmp_path / "model"
    folder.mkdir()
    for path in encoder.iterdir():
        (folder / path.name).write_bytes(path.read_bytes())
    (folder / "own.py").write_text(CODE.format(marker=str(marker)))
    config = json.loads((folder / "config.json").read_text())
    config |= {"model_type": "own", "auto_map": {"AutoConfig": "own.OwnConfig", "AutoModel": "own.OwnModel"}}
    (folder / "config.json").write_text(json.dumps(config))
    return folder


@pytest.fixture
def tokenizer_folder(marker, tmp_path):
    """A processor whose tokenizer says the same."""
    folder = tmp_path / "processor"
    tiny_processor().save_pretrained(folder)
    (folder / "own.py").write_text(CODE.format(marker=str(marker)))
    path = folder / "tokenizer_config.json"
    fields = json.loads(path.read_text()) | {
        "tokenizer_class": "OwnTokenizer",
        "auto_map": {"AutoTokenizer": [None, "own.OwnTokenizer"]},
    }
    path.write_text(json.dumps(fields))
    return folder


def test_the_code_is_run_where_a_caller_asks_for_it(tokenizer_folder, marker):
    MwpProcessor.from_pretrained(tokenizer_folder, trust_remote_code=True)
    assert marker.exists()


def test_a_processors_tokenizer(tokenizer_folder, marker):
    with pytest.raises(UsageError, match=r"Python code.*trust_remote_code=True"):
        MwpProcessor.from_pretrained(tokenizer_folder)
    assert not marker.exists()


@pytest.mark.parametrize(
    "load",
    [
        lambda folder: load_encoder(folder, None),
        lambda folder: load_solver(folder),
        lambda folder: MwpSolver.from_encoder_decoder_pretrained(folder, tiny_processor()),
        lambda folder: ParameterMixingCallback(folder),
    ],
    ids=["encoder", "solver", "decoder on an encoder", "mixing"],
)
def test_a_model(load, model_folder, marker):
    with pytest.raises(ValueError):
        load(str(model_folder))
    assert not marker.exists()


def test_a_look_at_a_model(model_folder, marker):
    with pytest.raises(UsageError):
        load_any(str(model_folder))
    assert not marker.exists()


def test_parts_of_a_solver(model_folder, marker):
    """A type that Transformers has a configuration for, and no `AutoModel`, may name code for the model."""
    own = {"auto_map": {"AutoModel": f"{model_folder}--own.OwnModel"}, "hidden_size": 312, "encoder_hidden_size": 312}
    for name in ("encoder_config", "decoder_config"):
        with pytest.raises(ValueError):
            MwpSolver(MwpSolverConfig(**{name: {"model_type": "align_text_model", **own}}))
    assert not marker.exists()


@pytest.mark.parametrize("command", ["heads", "solve", "train", "mix"])
def test_commands_name_the_folder_and_no_option_that_they_lack(
    command, model_folder, marker, problems, solver_folder, tmp_path, capsys
):
    options = {
        "heads": ["--model", str(model_folder), "--dataset", str(problems)],
        "solve": ["--model", str(model_folder), "1 and 2"],
        "train": ["--encoder", str(model_folder), "--dataset", str(problems), "--output_dir", str(tmp_path / "out")],
        "mix": [f"--pretrained={model_folder}", f"--distilled={solver_folder}", f"--output_dir={tmp_path / 'out'}"],
    }
    assert main([command, *options[command]]) == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert str(model_folder) in line
    assert not marker.exists()


def test_the_error_says_how_to_run_the_code(model_folder):
    with pytest.raises(UsageError, match=r"Python code.*trust_remote_code=True"):
        load_encoder(str(model_folder), None)


@pytest.mark.parametrize("folder", ["hf_mwp", "examples"])
def test_every_call_of_an_auto_class_decides(folder):
    """Where nothing is said, Transformers asks on standard input, and takes a line of a pipe for the answer."""
    undecided = []
    for path in sorted((ROOT / folder).rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
                continue
            auto = ast.unparse(node.func.value).lower().startswith("auto")
            decided = any(keyword.arg == "trust_remote_code" for keyword in node.keywords)
            if auto and node.func.attr in ("from_pretrained", "from_config") and not decided:
                undecided.append(f"{path.relative_to(ROOT)}:{node.lineno}")
    assert not undecided, f"pass `trust_remote_code`: {', '.join(undecided)}"
