"""Stock encoders without some heads and neurons, as models of their own: saved, loaded with and without hf_mwp."""

import copy
import json

import pytest
import torch
import transformers
from huggingface_hub.errors import StrictDataclassError
from transformers import (
    AutoModel,
    AutoModelForSequenceClassification,
    AutoModelForTokenClassification,
    DebertaV2ForTokenClassification,
    ModernBertForSequenceClassification,
    ModernBertModel,
)

from hf_mwp.compress.models import cut_model
from hf_mwp.compress.pruning import HeadGates, prune, prune_heads
from tests.compress.pruning.encoders import FOREIGN, first_output, tiny_encoder
from tests.fresh_python import WITHOUT_HF_MWP, run_fresh
from tests.slow_parameters import slow_except


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

INPUTS = {"input_ids": torch.arange(3, 11).unsqueeze(0)}
CUT_HEADS = {0: [1], 2: [0, 1, 2, 3]}


def assert_code_is_saved(folder):
    assert sorted(path.name for path in folder.glob("*.py")) == ["architecture.py", "cut_model.py", "layer_linears.py"]


def cut_classifier(name):
    return prune(tiny_encoder(name, "ForSequenceClassification"), CUT_HEADS, {1: [3]})


@pytest.mark.slow
def test_folders_load_without_hf_mwp(tmp_path):
    classifier = "AutoModelForSequenceClassification"
    models = {name: cut_classifier(name) for name in ("albert", "deberta-v3", "modernbert")}
    for name, model in models.items():
        model.save_pretrained(tmp_path / name)
        assert_code_is_saved(tmp_path / name)
    loads = [(name, classifier, model) for name, model in models.items()]
    # An Auto class that the folder was not saved with, and a folder that a process without hf_mwp has saved.
    loads.append(("modernbert", "AutoModel", models["modernbert"].base_model))
    loads.append(("0.pt-saved", classifier, models["albert"]))
    jobs = []
    for number, (folder, auto_class, _) in enumerate(loads):
        jobs.append((WITHOUT_HF_MWP + LOAD, tmp_path / folder, tmp_path / f"{number}.pt", auto_class))
    for number, (lines, _) in enumerate(run_fresh(tmp_path, *jobs)):
        model = loads[number][2]
        assert lines == [
            "Cut" + type(model).__name__.removeprefix("Cut"),
            "architecture.py cut_model.py layer_linears.py",
        ]
        loaded_output = torch.load(tmp_path / f"{number}.pt", weights_only=True)
        torch.testing.assert_close(loaded_output, first_output(model, INPUTS), rtol=0, atol=1e-6)


def test_loaded_model_has_the_saved_class_and_saves_its_code_again(tmp_path):
    model = cut_classifier("modernbert")
    for number in range(2):
        folder = tmp_path / str(number)
        model.save_pretrained(folder)
        assert_code_is_saved(folder)
        model = AutoModelForSequenceClassification.from_pretrained(folder)
        assert type(model) is cut_model.CutModernBertForSequenceClassification
        # The registered class comes before the folder's own.
        encoder = AutoModel.from_pretrained(folder, trust_remote_code=True)
        assert type(encoder) is cut_model.CutModernBertModel
    saved = json.loads((folder / "config.json").read_text())
    assert saved["model_type"] == "mwp_cut_modernbert" and saved["num_attention_heads"] == 4
    assert saved["cut_heads"] == [[1], [], [0, 1, 2, 3]] and saved["neurons_per_layer"] == [20, 19, 20]
    assert saved["auto_map"]["AutoConfig"] == "cut_model.CutModernBertConfig"
    assert saved["auto_map"]["AutoModelForMaskedLM"] == "cut_model.CutModernBertForMaskedLM"
    assert not hasattr(model.config, "auto_map") and not hasattr(model.config, "stock_config")
    assert (folder / "config.json").stat().st_mode == (folder / "model.safetensors").stat().st_mode
    with pytest.raises(StrictDataclassError, match="AutoModelForSequenceClassification.from_pretrained"):
        ModernBertForSequenceClassification.from_pretrained(folder)


def test_any_head_of_an_encoder_is_kept(tmp_path):
    model = DebertaV2ForTokenClassification(tiny_encoder("deberta-v3").config).eval()
    with HeadGates(model) as gates:
        gates.close(CUT_HEADS)
        expected = first_output(model, INPUTS)
    prune_heads(model, CUT_HEADS).save_pretrained(tmp_path)
    loaded = AutoModelForTokenClassification.from_pretrained(tmp_path)
    torch.testing.assert_close(first_output(loaded, INPUTS), expected, rtol=0, atol=1e-6)


@pytest.mark.parametrize("name", slow_except(FOREIGN, "deberta-v3", "mpnet"))
def test_cut_model_is_pruned_further(name):
    model = tiny_encoder(name)
    once = prune_heads(model, {0: [0, 2], 1: [3]})
    # Heads are counted anew: 1 and 3 of the first layer are now 0 and 1.
    twice = prune(once, {0: [0], 1: [0, 1]}, {0: [19]})
    at_once = prune(model, {0: [0, 1, 2], 1: [0, 1, 3]}, {0: [19]})
    torch.testing.assert_close(first_output(twice, INPUTS), first_output(at_once, INPUTS), rtol=0, atol=1e-6)
    assert type(twice) is type(once) and twice.config.cut_heads == at_once.config.cut_heads
    assert twice.config.heads_per_layer == [1, 1, 4] and twice.config.neurons_per_layer == [19, 20, 20]
    assert torch.equal(first_output(copy.deepcopy(twice), INPUTS), first_output(twice, INPUTS))


def test_dtype_mode_pooler_and_attention_are_those_of_the_source():
    model = tiny_encoder("mpnet", attn_implementation="eager").to(torch.bfloat16).train()
    model.pooler = None
    cut = prune_heads(model, {0: [0]})
    assert cut.dtype == torch.bfloat16 and cut.training and cut.pooler is None
    assert cut.config._attn_implementation == "eager"
    assert prune_heads(tiny_encoder("mpnet"), {0: [0]}).pooler is not None


def test_derived_class_raises():
    class DerivedModel(ModernBertModel):
        pass

    with pytest.raises(ValueError, match="DerivedModel"):
        prune_heads(DerivedModel(tiny_encoder("modernbert").config), {0: [0]})


@pytest.mark.parametrize("name", ["MPNetModel", "CutNothing", "CutTrainer", "Cutlogging"])
def test_only_stock_models_have_a_cut_class(name):
    assert cut_model.CutMPNetModel is cut_model.cut_class(transformers.MPNetModel)
    assert not hasattr(cut_model, name)
