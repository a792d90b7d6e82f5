"""The published models: they load from the repository, and the cards say what they are."""

import ast
import json
import re
from pathlib import Path

import pytest
import torch
from huggingface_hub import ModelCard
from transformers import AutoModel, AutoTokenizer, pipeline

import hf_mwp
from hf_mwp.compress.models.mwp_student.remote_code import FILES


CARDS = Path(__file__).parents[1] / "model_cards"
ENCODER, SOLVER = CARDS / "mwp-student-3L", CARDS / "mwp-student-3L-gts-math23k"
SMALL, FROM_GEMMA = CARDS / "mwp-student-3L-gts-math23k-small", CARDS / "mwp-student-3L-gts-math23k-gemma"
LARGE = CARDS / "mwp-student-6L-gts-math23k"
ENGLISH, WITH_ASDIV = CARDS / "mwp-student-3L-gts-english", CARDS / "mwp-student-3L-gts-english-asdiv"
SOLVERS = [SOLVER, SMALL, LARGE, FROM_GEMMA, ENGLISH, WITH_ASDIV]


def test_the_encoder_loads():
    encoder, loaded = AutoModel.from_pretrained(ENCODER, output_loading_info=True)
    assert not loaded["missing_keys"] and not loaded["unexpected_keys"]
    tokenizer = AutoTokenizer.from_pretrained(ENCODER)
    assert (encoder.config.num_hidden_layers, encoder.config.hidden_size, encoder.dtype) == (3, 312, torch.float32)
    assert sum(parameter.numel() for parameter in encoder.parameters()) == 10_282_440
    tokens = tokenizer("小明有[NUM0]个苹果", return_tensors="pt")
    assert "[NUM0]" in tokenizer.convert_ids_to_tokens(tokens["input_ids"][0])
    assert encoder(**tokens).last_hidden_state.isfinite().all()


def test_the_encoder_brings_a_processor_that_masks_numbers():
    processor = hf_mwp.MwpProcessor.from_pretrained(ENCODER)
    tokens = processor.tokenizer.convert_ids_to_tokens(processor("小明有12个苹果")["input_ids"][0])
    assert "[NUM0]" in tokens and "12" not in tokens


def test_the_encoder_carries_the_code_of_this_version():
    package = Path(hf_mwp.__file__).parent / "compress" / "models" / "mwp_student"
    files = list(ENCODER.glob("*.py"))
    assert {path.name for path in files} == set(FILES)
    for path in files:
        assert path.read_text("utf-8") == (package / path.name).read_text("utf-8"), path.name


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("小明有4个苹果和2个梨，一共有多少个水果？", 6),
        ("一辆汽车3小时行驶180千米，照这样计算，5小时行驶多少千米？", 300),
        ("一本书240页，小红第一天看了全书的25%，还剩多少页没看？", 180),
    ],
)
@pytest.mark.parametrize("folder", [SOLVER, SMALL, LARGE, FROM_GEMMA], ids=lambda folder: folder.name)
def test_the_solver_solves(folder, text, answer):
    assert pipeline("math-word-problem", model=str(folder), device="cpu")(text)[0]["answer"] == answer


@pytest.mark.parametrize("folder", [ENGLISH, WITH_ASDIV], ids=lambda folder: folder.name)
def test_the_english_solver_solves(folder):
    solver = pipeline("math-word-problem", model=str(folder), device="cpu")
    problems = {
        "A baker made 48 muffins and sold 3 boxes of 8. How many muffins are left?": 24,
        "A train travels 180 miles in 3 hours. How far does it travel in 5 hours?": 300,
    }
    assert [found["answer"] for found in solver([*problems])] == [*problems.values()]
    licence = {ENGLISH: "apache-2.0", WITH_ASDIV: "cc-by-nc-4.0"}[folder]
    assert ModelCard.load(folder / "README.md").data.license == licence


def test_what_is_distilled_from_gemma_says_so():
    assert ModelCard.load(FROM_GEMMA / "README.md").data.license == "gemma"
    assert ModelCard.load(SOLVER / "README.md").data.license == "other"
    notice = "Gemma is provided under and subject to the Gemma Terms of Use found at ai.google.dev/gemma/terms"
    assert notice in (FROM_GEMMA / "NOTICE").read_text("utf-8")
    assert "Gemma Terms of Use" in (CARDS.parent / "README.md").read_text("utf-8")


@pytest.mark.parametrize("folder", [ENCODER, *SOLVERS], ids=lambda folder: folder.name)
def test_files_are_small_and_the_card_is_whole(folder):
    assert all(path.stat().st_size <= 50e6 for path in folder.glob("*.safetensors"))
    card = ModelCard.load(folder / "README.md")
    assert card.data.language == ("en" if "english" in folder.name else "zh") and (
        folder == ENCODER or card.data.eval_results
    )
    for part in ("How to use", "Results", "Mistakes", "Data, licences and limits", "Citation"):
        assert re.search(rf"^## {part}$", card.text, re.MULTILINE), part
    assert len(card.content.encode()) <= 6000 and (folder == ENCODER or len(card.data.eval_results) <= 8)
    record = json.loads((folder / "record.json").read_text(encoding="utf-8"))
    assert record["stages"] and record["figures"] and record["training_texts"]["texts"]


@pytest.mark.parametrize("folder", SOLVERS, ids=lambda folder: folder.name)
def test_the_card_shows_what_the_model_prints(folder, monkeypatch, capsys):
    monkeypatch.chdir(CARDS.parent)
    text = (folder / "README.md").read_text(encoding="utf-8")
    code, shown = re.search(r"^```python\n(.*?)^```\n\n```text\n(.*?)^```", text, re.DOTALL | re.MULTILINE).groups()
    exec(compile(code, str(folder), "exec"), {})
    printed, expected = (ast.literal_eval(each) for each in (capsys.readouterr().out, shown))
    for ours, theirs in zip(printed, expected, strict=True):
        assert ours.pop("score") == pytest.approx(theirs.pop("score"), abs=1e-3)
        assert ours.pop("plausibility") == pytest.approx(theirs.pop("plausibility"), abs=1e-3)
        assert ours == theirs
