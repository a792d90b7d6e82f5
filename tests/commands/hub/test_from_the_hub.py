"""Published models are loaded again, by a client that talks to a Hub on the loopback device."""

import json
import re
from pathlib import Path

import pytest
import torch
from huggingface_hub import constants, snapshot_download
from transformers import AutoModel, pipeline

import hf_mwp
from hf_mwp.commands.export import ExportArguments, export_solver
from hf_mwp.commands.hub import build_model_card, model_record, write_model_folder
from hf_mwp.runtime import load_solver
from hf_mwp.runtime.plausibility import FEATURES, PlausibilityReranker
from hf_mwp.solver.data import TrainingTexts
from hf_mwp.utils.provenance import training_texts_of
from tests.commands.hub.loopback_hub import client_of_loopback_hub
from tests.fresh_python import run_fresh
from tests.tiny import tiny_problems, tiny_processor, tiny_solver


TEXTS = [problem.text for problem in tiny_problems(6)]
SIZES = {"main": 50, "v1": 40}
MASKED_TEXT = "小明有[NUM]个苹果"

ENCODER_ALONE = """
import json, sys
import torch
from huggingface_hub import constants
from transformers import AutoModel, AutoTokenizer

# Not to be imported, as where it is not installed.
sys.modules["hf_mwp"] = None
url, name, solver, text, token = sys.argv[1:]
constants.ENDPOINT = url
constants.HUGGINGFACE_CO_URL_TEMPLATE = url + "/{repo_id}/resolve/{revision}/{filename}"
constants.HF_HUB_OFFLINE = False
constants.HF_HUB_DISABLE_XET = True
options = {"trust_remote_code": True, "token": token or None}
encoder = AutoModel.from_pretrained(name, **options)
assert type(encoder).__module__.startswith("transformers_modules.")
tokens = AutoTokenizer.from_pretrained(name, **options)(text, return_tensors="pt")
with torch.inference_mode():
    print(json.dumps(encoder(**tokens).last_hidden_state.tolist()))
try:
    AutoModel.from_pretrained(solver, **options)
except ImportError as error:
    print(str(error).replace("\\n", " "))
"""


def write_solver(folder, size):
    processor = tiny_processor(max_length=size)
    solver = tiny_solver(processor, seed=size)
    solver.training_texts = TrainingTexts.from_texts(["有1个"], [f"texts of {size}"])
    write_model_folder(solver, folder, build_model_card(solver, "x"), processor)
    (folder / "record.json").write_text(json.dumps(model_record()))
    PlausibilityReranker("zh", {feature.name: 0.0 for feature in FEATURES}, num_beams=size).save_pretrained(folder)
    return folder


@pytest.fixture(scope="module")
def published(tmp_path_factory):
    """The URL of a Hub with two revisions of a private solver and a public encoder, and the folders of these."""
    parent = tmp_path_factory.mktemp("published")
    folders = {revision: write_solver(parent / revision, size) for revision, size in SIZES.items()}
    encoder = write_solver(parent / "encoder", 30)
    hf_mwp.MwpSolver.from_pretrained(encoder).encoder.save_pretrained(encoder)
    with client_of_loopback_hub(parent) as hub:
        for revision, folder in folders.items():
            hf_mwp.push_solver_to_hub(folder, "user/solver", revision=revision)
        hf_mwp.push_solver_to_hub(encoder, "user/mwp-student-3L", private=False)
        hf_mwp.push_solver_to_hub(folders["main"], "user/open-solver", private=False)
        yield hub.url, folders | {"encoder": encoder}


@pytest.fixture(autouse=True)
def anonymous_client(tmp_path, monkeypatch):
    """The client has no token and an empty cache."""
    monkeypatch.setenv("HF_TOKEN", "")
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "cache"))


def check_encoder_alone(tmp_path, folder, url, name, solver, token=""):
    """Load an encoder in a process without the package, and compare its states with those of its folder."""
    job = (ENCODER_ALONE, url, name, solver, MASKED_TEXT, token)
    (((states, refusal), _),) = run_fresh(tmp_path, job)
    tokens = hf_mwp.MwpProcessor.from_pretrained(folder).tokenizer(MASKED_TEXT, return_tensors="pt")
    with torch.inference_mode():
        expected = AutoModel.from_pretrained(folder)(**tokens).last_hidden_state
    torch.testing.assert_close(torch.tensor(json.loads(states)), expected)
    assert "pip install hf-mwp" in refusal


@pytest.mark.slow
def test_encoder_loads_where_the_package_is_missing(published, tmp_path):
    url, folders = published
    check_encoder_alone(tmp_path, folders["encoder"], url, "user/mwp-student-3L", "user/open-solver")


@pytest.mark.slow
@pytest.mark.parametrize("revision", ["v1", None])
def test_all_files_of_a_private_solver_are_of_the_revision(published, revision):
    options = {"revision": revision, "token": "hf_user"}
    solve = pipeline("math-word-problem", model="user/solver", device="cpu", **options)
    branch = revision or "main"
    local = pipeline("math-word-problem", model=str(published[1][branch]), device="cpu")
    assert solve(TEXTS, rerank=True) == local(TEXTS, rerank=True)
    model, processor = hf_mwp.load_solver("user/solver", **options)
    assert processor.max_length == SIZES[branch]
    assert training_texts_of(model).sources[0] == f"texts of {SIZES[branch]}"
    files = {path.name for path in Path(snapshot_download("user/solver", **options)).iterdir()}
    assert {"model.safetensors", "plausibility.json"} <= files


def test_exported_solver_has_reranker_and_card(published, tmp_path):
    export_solver(ExportArguments("user/open-solver", str(tmp_path / "out")))
    assert {"plausibility.json", "README.md"} <= {path.name for path in (tmp_path / "out").iterdir()}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("load", "message"),
    [
        (lambda name: pipeline("math-word-problem", model=name), "user/solver.*token"),
        (hf_mwp.load_solver, "user/solver.*token"),
        (load_solver, "hf download user/solver --local-dir"),
    ],
)
def test_private_solver_needs_the_token(published, load, message):
    with pytest.raises((OSError, ValueError), match=re.compile(message, re.DOTALL)):
        load("user/solver")
