"""Stock encoders without some heads and neurons, as models of their own: saved, loaded with and without hf_mwp."""

import copy
import json
import os

import pytest
import torch
import transformers
from huggingface_hub.errors import StrictDataclassError
from transformers import (
    AutoModel,
    AutoModelForSequenceClassification,
    AutoModelForTokenClassification,
    AutoTokenizer,
    DebertaV2ForTokenClassification,
    ModernBertForSequenceClassification,
    ModernBertModel,
    pipeline,
)

from hf_mwp.compress.models import cut_model
from hf_mwp.compress.pruning import HeadGates, prune_heads, prune_neurons
from tests.compress.pruning.encoders import FOREIGN, tiny_encoder
from tests.fresh_python import WITHOUT_HF_MWP, run_fresh
from tests.tiny import tiny_tokenizer


# Loads a folder with an Auto class while hf_mwp cannot be imported; prints the class and the code that is saved again.
LOAD = """
import os
import sys
import torch
import transformers

folder, target, name = sys.argv[1:]
model = getattr(transformers, name).from_pretrained(folder, trust_remote_code=True).eval()
torch.save(model(torch.arange(3, 11).unsqueeze(0))[0].detach(), target)
print(type(model).__name__)
model.save_pretrained(target + "-saved")
print(*sorted(file for file in os.listdir(target + "-saved") if file.endswith(".py")))
assert "hf_mwp" not in sys.modules
"""

CODE = ["architecture.py", "cut_model.py"]
INPUT_IDS = torch.arange(3, 11).unsqueeze(0)
GONE = {0: [1], 2: [0, 1, 2, 3]}


def outputs(model):
    with torch.no_grad():
        return model(INPUT_IDS)[0]


def python_files(folder):
    return sorted(file for file in os.listdir(folder) if file.endswith(".py"))


def cut_classifier(name):
    return prune_neurons(prune_heads(tiny_encoder(name, "ForSequenceClassification"), GONE), {1: [3]})


def test_folders_load_without_hf_mwp(tmp_path):
    classifier = "AutoModelForSequenceClassification"
    loads = []
    for name in FOREIGN:
        model = cut_classifier(name)
        model.save_pretrained(tmp_path / name)
        assert python_files(tmp_path / name) == CODE
        loads.append((name, classifier, type(model).__name__, model))
    # An Auto class that the folder was not saved with, and a folder that a process without hf_mwp has saved.
    loads.append((name, "AutoModel", type(model.base_model).__name__, model.base_model))
    loads.append(("0.pt-saved", classifier, loads[0][2], loads[0][3]))
    jobs = [
        (WITHOUT_HF_MWP + LOAD, tmp_path / load[0], tmp_path / f"{number}.pt", load[1])
        for number, load in enumerate(loads)
    ]
    shown = [lines for lines, _ in run_fresh(tmp_path, *jobs)]
    for number, (_, _, name, model) in enumerate(loads):
        assert shown[number] == ["Cut" + name.removeprefix("Cut"), " ".join(CODE)]
        loaded = torch.load(tmp_path / f"{number}.pt", weights_only=True)
        torch.testing.assert_close(loaded, outputs(model), rtol=0, atol=1e-6)


def test_a_folder_loads_as_what_was_saved_and_carries_its_code_on(tmp_path):
    cut_classifier("modernbert").save_pretrained(tmp_path / "0")
    for step in (0, 1):
        found = AutoModelForSequenceClassification.from_pretrained(tmp_path / str(step))
        assert type(found) is cut_model.CutModernBertForSequenceClassification
        # The registered class goes before the folder's own.
        assert (
            type(AutoModel.from_pretrained(tmp_path / str(step), trust_remote_code=True))
            is cut_model.CutModernBertModel
        )
        found.save_pretrained(tmp_path / str(step + 1))
        assert python_files(tmp_path / str(step + 1)) == CODE
    written = json.loads((tmp_path / "1" / "config.json").read_text())
    assert (written["model_type"], written["num_attention_heads"]) == ("mwp_cut_modernbert", 4)
    assert (written["cut_heads"], written["neurons_per_layer"]) == ([[1], [], [0, 1, 2, 3]], [20, 19, 20])
    assert written["auto_map"]["AutoConfig"] == "cut_model.CutModernBertConfig"
    assert written["auto_map"]["AutoModelForMaskedLM"] == "cut_model.CutModernBertForMaskedLM"
    assert not hasattr(found.config, "auto_map") and not hasattr(found.config, "stock_config")
    modes = {(tmp_path / "1" / name).stat().st_mode for name in ("config.json", "model.safetensors")}
    assert len(modes) == 1
    with pytest.raises(StrictDataclassError, match="AutoModelForSequenceClassification.from_pretrained"):
        ModernBertForSequenceClassification.from_pretrained(tmp_path / "1")


def test_any_head_of_an_encoder_can_be_kept(tmp_path):
    model = DebertaV2ForTokenClassification(tiny_encoder("deberta-v3").config).eval()
    with HeadGates(model) as gates:
        gates.close(GONE)
        expected = outputs(model)
    prune_heads(model, GONE).save_pretrained(tmp_path)
    loaded = AutoModelForTokenClassification.from_pretrained(tmp_path)
    torch.testing.assert_close(outputs(loaded), expected, rtol=0, atol=1e-6)


@pytest.mark.parametrize("name", FOREIGN)
def test_a_cut_model_is_pruned_further(name):
    model = tiny_encoder(name)
    once = prune_heads(model, {0: [0, 2], 1: [3]})
    # Heads are counted anew: of the first layer, 1 and 3 are left.
    twice = prune_neurons(prune_heads(once, {0: [0], 1: [0, 1]}), {0: [19]})
    at_once = prune_neurons(prune_heads(model, {0: [0, 1, 2], 1: [0, 1, 3]}), {0: [19]})
    torch.testing.assert_close(outputs(twice), outputs(at_once), rtol=0, atol=1e-6)
    assert type(twice) is type(once) and twice.config.cut_heads == at_once.config.cut_heads
    assert twice.config.heads_per_layer == [1, 1, 4] and twice.config.neurons_per_layer == [19, 20, 20]
    assert torch.equal(outputs(copy.deepcopy(twice)), outputs(twice))


def test_a_pipeline_finds_model_and_tokenizer(tmp_path):
    tokenizer = tiny_tokenizer()
    model = tiny_encoder("modernbert", "ForSequenceClassification", vocab_size=len(tokenizer))
    cut = prune_heads(model, {0: [1, 2]})
    cut.save_pretrained(tmp_path)
    tokenizer.save_pretrained(tmp_path)
    assert AutoTokenizer.from_pretrained(tmp_path).get_vocab() == tokenizer.get_vocab()
    text = "小明有4个苹果"
    (found,) = pipeline("text-classification", model=str(tmp_path), top_k=None)([text])
    with torch.no_grad():
        expected = cut(**tokenizer(text, return_tensors="pt")).logits.softmax(-1)[0]
    for each in found:
        assert each["score"] == pytest.approx(expected[int(each["label"][-1])].item(), abs=1e-5)


def test_dtype_mode_pooler_and_attention_are_the_sources():
    model = tiny_encoder("mpnet", attn_implementation="eager").to(torch.bfloat16).train()
    model.pooler = None
    cut = prune_heads(model, {0: [0]})
    assert (cut.dtype, cut.training, cut.pooler) == (torch.bfloat16, True, None)
    assert cut.config._attn_implementation == "eager"
    assert prune_heads(tiny_encoder("mpnet"), {0: [0]}).pooler is not None


class WithAnotherPart(ModernBertModel):
    pass


def test_a_derived_class_is_refused():
    with pytest.raises(ValueError, match="WithAnotherPart"):
        prune_heads(WithAnotherPart(tiny_encoder("modernbert").config), {0: [0]})


def test_only_stock_models_have_a_class():
    assert cut_model.CutMPNetModel is cut_model.cut_class(transformers.MPNetModel)
    for name in ("MPNetModel", "CutNothing", "CutTrainer", "Cutlogging"):
        assert not hasattr(cut_model, name)
