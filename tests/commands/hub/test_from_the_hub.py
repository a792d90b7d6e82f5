"""What was published is loaded again, by processes whose client talks to a Hub on the loopback device."""

import json

import pytest
import torch
from transformers import AutoModel, pipeline

import hf_mwp
from hf_mwp.commands.hub import build_model_card, model_record, write_model_folder
from hf_mwp.runtime.plausibility import FEATURES, PlausibilityReranker
from hf_mwp.solver.data import TrainingTexts
from tests.commands.hub.loopback_hub import client_of_loopback_hub
from tests.fresh_python import run_fresh
from tests.tiny import tiny_problems, tiny_processor, tiny_solver


TEXTS = [problem.text for problem in tiny_problems(6)]
SIZES = {"main": 50, "v1": 40}

ENCODER_ALONE = """
import json, sys
import torch
from transformers import AutoModel, AutoTokenizer

# Not to be imported, as where it is not installed.
sys.modules["hf_mwp"] = None
name, solver = sys.argv[1:]
encoder = AutoModel.from_pretrained(name, trust_remote_code=True)
assert type(encoder).__module__.startswith("transformers_modules.")
tokens = AutoTokenizer.from_pretrained(name, trust_remote_code=True)("小明有[NUM]个苹果", return_tensors="pt")
with torch.inference_mode():
    print(json.dumps(encoder(**tokens).last_hidden_state.tolist()))
try:
    AutoModel.from_pretrained(solver, trust_remote_code=True)
except ImportError as error:
    print(str(error).replace("\\n", " "))
"""

SOLVE = """
import json, sys
from pathlib import Path
from transformers import pipeline
from huggingface_hub import snapshot_download
import hf_mwp
from hf_mwp.utils.provenance import training_texts_of

name, revision, token, texts = json.loads(sys.argv[1])
solver = pipeline("math-word-problem", model=name, revision=revision, token=token, device="cpu")
print(json.dumps(solver(texts, rerank=True)))
model, processor = hf_mwp.load_solver(name, revision=revision, token=token)
print(processor.max_length, training_texts_of(model).sources[0])
print(sorted(path.name for path in Path(snapshot_download(name, revision=revision, token=token)).iterdir()))
"""

REFUSED = """
import sys
from transformers import pipeline
import hf_mwp
from hf_mwp.runtime import load_solver

for load in (lambda name: pipeline("math-word-problem", model=name), hf_mwp.load_solver, load_solver):
    try:
        load(sys.argv[1])
    except Exception as error:
        print(type(error).__name__, str(error).replace("\\n", " "))
"""

EXPORT = """
import sys
from pathlib import Path
import hf_mwp
from hf_mwp.commands.export import ExportArguments
from hf_mwp.commands.export import export_solver

export_solver(ExportArguments(*sys.argv[1:]))
print(sorted(path.name for path in Path(sys.argv[2]).iterdir()))
"""


def write_solver(folder, size):
    processor = tiny_processor(max_length=size)
    torch.manual_seed(size)
    solver = tiny_solver(processor)
    solver.training_texts = TrainingTexts.from_texts(["有1个"], [f"texts of {size}"])
    write_model_folder(solver, folder, build_model_card(solver, "x"), processor)
    (folder / "record.json").write_text(json.dumps(model_record()))
    PlausibilityReranker("zh", {feature.name: 0.0 for feature in FEATURES}, num_beams=size).save_pretrained(folder)
    return folder


@pytest.fixture(scope="module")
def published(tmp_path_factory):
    """A Hub with two revisions of a private solver and a public encoder, and their folders."""
    place = tmp_path_factory.mktemp("published")
    folders = {revision: write_solver(place / revision, size) for revision, size in SIZES.items()}
    encoder = write_solver(place / "encoder", 30)
    hf_mwp.MwpSolver.from_pretrained(encoder).encoder.save_pretrained(encoder)
    with client_of_loopback_hub(place) as hub:
        for revision, folder in folders.items():
            hf_mwp.push_solver_to_hub(folder, "user/solver", revision=revision)
        hf_mwp.push_solver_to_hub(encoder, "user/mwp-student-3L", private=False)
        hf_mwp.push_solver_to_hub(folders["main"], "user/open-solver", private=False)
        yield hub, folders | {"encoder": encoder}


def run(published, folder, *jobs, **variables):
    hub, _ = published
    fixed = {"HF_ENDPOINT": hub.url, "HF_HUB_OFFLINE": "0", "HF_HUB_DISABLE_XET": "1", "HF_TOKEN": ""}
    return run_fresh(folder, *jobs, **fixed | variables)


def test_an_encoder_loads_where_the_package_is_missing(published, tmp_path):
    ((states, refusal), _), *_ = run(published, tmp_path, (ENCODER_ALONE, "user/mwp-student-3L", "user/open-solver"))
    encoder = AutoModel.from_pretrained(published[1]["encoder"])
    processor = hf_mwp.MwpProcessor.from_pretrained(published[1]["encoder"])
    tokens = processor.tokenizer("小明有[NUM]个苹果", return_tensors="pt")
    with torch.inference_mode():
        expected = encoder(**tokens).last_hidden_state
    torch.testing.assert_close(torch.tensor(json.loads(states)), expected)
    assert "pip install hf-mwp" in refusal


@pytest.mark.parametrize("revision", ["v1", None])
def test_all_files_of_a_private_solver_are_of_the_revision(published, tmp_path, revision):
    job = (SOLVE, json.dumps(["user/solver", revision, "hf_user", TEXTS]))
    ((results, loaded, files), _), *_ = run(published, tmp_path, job)
    name = revision or "main"
    local = pipeline("math-word-problem", model=str(published[1][name]), device="cpu")
    assert json.loads(results) == local(TEXTS, rerank=True)
    assert loaded == f"{SIZES[name]} texts of {SIZES[name]}"
    assert "model.safetensors" in files and "plausibility.json" in files


def test_an_exported_solver_keeps_reranker_and_card(published, tmp_path):
    ((files,), _), *_ = run(published, tmp_path, (EXPORT, "user/open-solver", tmp_path / "out"))
    assert "plausibility.json" in files and "README.md" in files


def test_a_private_solver_needs_the_token(published, tmp_path):
    (lines, _), *_ = run(published, tmp_path, (REFUSED, "user/solver"))
    assert len(lines) == 3 and all("user/solver" in line and "token" in line for line in lines[:2])
    assert "hf download user/solver --local-dir" in lines[2]


@pytest.mark.slow
def test_the_published_models_give_equal_answers(repository, tmp_path):
    cards = repository / "model_cards"
    solver = cards / "mwp-student-3L-gts-math23k"
    encoder = cards / "mwp-student-3L"
    with client_of_loopback_hub(tmp_path) as hub:
        for folder in (solver, encoder):
            hf_mwp.push_solver_to_hub(folder, f"user/{folder.name}")
        token = {"HF_TOKEN": "hf_user"}
        jobs = (
            (ENCODER_ALONE, f"user/{encoder.name}", f"user/{solver.name}"),
            (
                SOLVE,
                json.dumps([f"user/{solver.name}", None, "hf_user", TEXTS]),
            ),
        )
        ((states, _), _), ((results, *_), _) = run((hub, None), tmp_path, *jobs, **token)
    local = pipeline("math-word-problem", model=str(solver), device="cpu")
    assert json.loads(results) == local(TEXTS, rerank=True)
    processor = hf_mwp.MwpProcessor.from_pretrained(encoder)
    model = AutoModel.from_pretrained(encoder)
    with torch.inference_mode():
        expected = model(**processor.tokenizer("小明有[NUM]个苹果", return_tensors="pt")).last_hidden_state
    torch.testing.assert_close(torch.tensor(json.loads(states)), expected)
