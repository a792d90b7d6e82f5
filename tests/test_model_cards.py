"""The published models: they load from the repository, and the cards say what they are."""

import ast
import json
import re
from pathlib import Path

import pytest
import torch
from huggingface_hub import ModelCard
from transformers import AutoModel

import hf_mwp
from hf_mwp.compress.models.mwp_student.remote_code import FILES
from tests.slow_parameters import slow_except


ROOT = Path(__file__).parents[1]
CARDS = ROOT / "model_cards"
ENCODER = CARDS / "mwp-student-3L"
LICENCES = {
    "mwp-student-3L-gts-math23k": "other",
    "mwp-student-3L-gts-math23k-small": "other",
    "mwp-student-6L-gts-math23k": "other",
    "mwp-student-3L-gts-math23k-gemma": "gemma",
    "mwp-student-3L-gts-english": "apache-2.0",
}
QUICK_CARDS = ("mwp-student-3L-gts-math23k", "mwp-student-3L-gts-english")


@pytest.mark.usefixtures("published_weights")
def test_encoder_loads_with_its_processor():
    encoder, info = AutoModel.from_pretrained(ENCODER, output_loading_info=True)
    assert not info["missing_keys"] and not info["unexpected_keys"]
    assert encoder.num_parameters() == 10_282_440 and encoder.dtype == torch.float32
    processor = hf_mwp.MwpProcessor.from_pretrained(ENCODER)
    ids = processor("小明有12个苹果")["input_ids"]
    tokens = processor.tokenizer.convert_ids_to_tokens(ids[0])
    assert "[NUM0]" in tokens and "12" not in tokens
    assert encoder(torch.as_tensor(ids)).last_hidden_state.isfinite().all()


def test_encoder_has_the_code_of_this_version():
    package = Path(hf_mwp.__file__).parent / "compress" / "models" / "mwp_student"
    assert {path.name for path in ENCODER.glob("*.py")} == set(FILES)
    for name in FILES:
        assert (ENCODER / name).read_text("utf-8") == (package / name).read_text("utf-8"), name


def test_models_distilled_from_gemma_say_so():
    notice = "Gemma is provided under and subject to the Gemma Terms of Use found at ai.google.dev/gemma/terms"
    assert notice in (CARDS / "mwp-student-3L-gts-math23k-gemma" / "NOTICE").read_text("utf-8")
    assert "Gemma Terms of Use" in (ROOT / "README.md").read_text("utf-8")


@pytest.mark.parametrize("name", [ENCODER.name, *LICENCES])
def test_files_are_small_and_the_card_is_complete(name):
    folder = CARDS / name
    for path in folder.glob("*.safetensors"):
        assert path.stat().st_size <= 50e6
    card = ModelCard.load(folder / "README.md")
    assert card.data.language == ("en" if "english" in name else "zh")
    if name in LICENCES:
        assert card.data.license == LICENCES[name]
        assert 1 <= len(card.data.eval_results) <= 8
    for heading in ("How to use", "Results", "Mistakes", "Data, licences and limits", "Citation"):
        assert f"\n## {heading}\n" in card.text, heading
    assert len(card.content.encode()) <= 6000
    record = json.loads((folder / "record.json").read_text(encoding="utf-8"))
    assert record["stages"] and record["figures"] and record["training_texts"]["texts"]


@pytest.mark.usefixtures("published_weights")
@pytest.mark.parametrize("name", slow_except(LICENCES, *QUICK_CARDS))
def test_card_shows_what_the_model_prints(name, monkeypatch, capsys):
    monkeypatch.chdir(ROOT)
    text = (CARDS / name / "README.md").read_text(encoding="utf-8")
    blocks = re.search(r"^```python\n(.*?)^```\n\n```text\n(.*?)^```", text, re.DOTALL | re.MULTILINE)
    exec(compile(blocks[1], name, "exec"), {})
    printed = ast.literal_eval(capsys.readouterr().out)
    for solution, expected in zip(printed, ast.literal_eval(blocks[2]), strict=True):
        for score in ("score", "plausibility"):
            assert solution.pop(score) == pytest.approx(expected.pop(score), abs=1e-3)
        assert solution == expected
