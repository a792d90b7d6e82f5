"""Adapters in encoders of all architectures: put on, trained, merged."""

import peft
import pytest
import torch
from transformers import AutoModelForSequenceClassification, ErnieConfig, ErnieModel

from hf_mwp import add_lora, merge_lora, prune_heads
from hf_mwp.compress.models.architecture import ARCHITECTURES
from hf_mwp.compress.models.lora import load_adapters, merged_weights, save_adapters
from hf_mwp.solver.models import MwpSolver
from hf_mwp.utils.usage_error import UsageError
from tests.compress.pruning.encoders import CLASSES, FOREIGN, tiny_batch, tiny_encoder
from tests.tiny import tiny_classifier, tiny_processor, tiny_solver


def outputs(model):
    with torch.no_grad():
        return model.eval()(**tiny_batch(model)).to_tuple()[0]


def shaken(model):
    """The model as after a training: what can be trained is otherwise."""
    torch.manual_seed(1)
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.requires_grad:
                parameter.add_(torch.randn(parameter.shape) * 0.1)
    return model


def tiny_ernie():
    sizes = {"vocab_size": 40, "hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2}
    return ErnieModel(ErnieConfig(**sizes, intermediate_size=24))


@pytest.mark.parametrize("name", [*CLASSES, *FOREIGN])
def test_merged_equals_adapted_equals_reloaded(name, tmp_path):
    model = tiny_encoder(name, "ForSequenceClassification")
    names = list(model.state_dict())
    before = outputs(model)
    add_lora(model, rank=2, tokens=[6, 9])
    # Adapters begin as nothing.
    assert torch.equal(outputs(model), before)
    adapted = outputs(shaken(model))
    assert (adapted - before).abs().max() > 0.01
    weights = merged_weights(model)
    merge_lora(model)
    assert list(model.state_dict()) == names and all(each.requires_grad for each in model.parameters())
    assert all(torch.equal(weights[each], value) for each, value in model.state_dict().items())
    torch.testing.assert_close(outputs(model), adapted, atol=1e-6, rtol=1e-5)
    model.save_pretrained(tmp_path)
    assert torch.equal(outputs(AutoModelForSequenceClassification.from_pretrained(tmp_path)), outputs(model))


@pytest.mark.parametrize(
    ("name", "layers", "parts"),
    [
        *(
            (name, each.layers, [each.query, each.value])
            for name in CLASSES
            for each in [ARCHITECTURES[name.removeprefix("narrow ")]]
        ),
        ("modernbert", "layers", ["attn.Wqkv"]),
    ],
)
def test_what_is_trained(name, layers, parts):
    model = add_lora(tiny_encoder(name, "ForSequenceClassification"), rank=2)
    trained = {each for each, parameter in model.named_parameters() if parameter.requires_grad}
    on_it = {each for each in trained if f"{model.base_model_prefix}.{layers}." not in each}
    adapters = {
        f"{model.base_model_prefix}.{layers}.{layer}.{part}.lora_{letter}.default.weight"
        for layer in range(3)
        for part in parts
        for letter in "AB"
    }
    assert trained - on_it == adapters
    on_top = ("pooler", "classifier", "head.")
    assert on_it == {each for each, _ in model.named_parameters() if any(word in each for word in on_top)}


def test_adapters_by_hand():
    model = tiny_encoder("bert")
    query = model.encoder.layer[0].attention.self.query
    before = query.weight.detach().clone()
    shaken(add_lora(model, rank=2, alpha=6, targets=["query"]))
    layer = model.encoder.layer[0].attention.self.query
    down = layer.lora_A["default"].weight
    up = layer.lora_B["default"].weight
    expected = before + 6 / 2 * (up @ down)
    merge_lora(model)
    torch.testing.assert_close(model.encoder.layer[0].attention.self.query.weight, expected)


def test_rows_of_tokens_by_hand():
    model = tiny_encoder("bert")
    table = model.embeddings.word_embeddings
    before = table.weight.detach().clone()
    others = [each for each in range(40) if each not in (6, 9)]
    add_lora(model, rank=1, tokens=[9, 6])
    rows = table.trained_tokens.rows
    table(torch.tensor([[9, 7, 9]])).sum().backward()
    assert rows.grad.tolist() == [[2.0] * 24, [0.0] * 24] and table.weight.grad is None
    with torch.no_grad():
        rows += 1
    assert torch.equal(table(torch.tensor([6, 7])), torch.stack([before[6] + 1, before[7]]))
    merge_lora(model)
    assert torch.equal(table.weight[[9, 6]], before[[9, 6]] + 1) and torch.equal(table.weight[others], before[others])


def test_a_solver_keeps_what_stands_on_its_encoder():
    processor = tiny_processor()
    solver = add_lora(tiny_solver(processor, bottleneck_layers=[1], bottleneck_size=4), rank=2)
    frozen = {name for name, parameter in solver.named_parameters() if not parameter.requires_grad}
    assert all(name.startswith("encoder.") for name in frozen)
    assert isinstance(solver, MwpSolver) and "encoder.embeddings.word_embeddings.weight" in frozen


def test_a_pruned_encoder():
    model = prune_heads(tiny_encoder("bert"), {0: [0, 1, 2, 3], 1: [2]})
    shaken(add_lora(model, rank=2, targets=["query", "attention_output", "intermediate", "output"]))
    assert model.encoder.layer[1].attention.self.query.lora_B["default"].weight.shape == (18, 2)
    adapted = outputs(model)
    torch.testing.assert_close(outputs(merge_lora(model)), adapted, atol=1e-6, rtol=1e-5)
    with pytest.raises(ValueError, match="hf_mwp.merge_lora"):
        prune_heads(add_lora(model, rank=1), {1: [0]})


def test_an_encoder_that_is_not_known_has_its_own_names():
    with pytest.raises(UsageError, match="'ernie'.* query, key, value, dense"):
        add_lora(tiny_ernie(), rank=2)
    model = add_lora(tiny_ernie(), rank=2, targets=["query"])
    assert sum(".lora_A." in name for name, _ in model.named_parameters()) == 2


def test_wrong_use_is_named():
    with pytest.raises(UsageError, match="'valeu'.* query, key, value, attention_output, interm"):
        add_lora(tiny_classifier(), rank=1, targets=["query", "valeu"])
    with pytest.raises(ValueError, match="positive integer.* 0"):
        add_lora(tiny_classifier(), rank=0)


@pytest.mark.filterwarnings("ignore:`is_gradient_checkpointing` is deprecated")
def test_adapters_that_are_there_already():
    for model in (
        add_lora(tiny_classifier(), rank=1),
        peft.get_peft_model(tiny_encoder("bert"), peft.LoraConfig(target_modules=["query"])).base_model.model,
    ):
        with pytest.raises(UsageError, match="adapters.*`hf_mwp.merge_lora`"):
            add_lora(model, rank=1)


def test_adapters_of_another_model_are_refused(tmp_path):
    save_adapters(add_lora(tiny_classifier(), rank=2), tmp_path)
    load_adapters(add_lora(tiny_classifier(), rank=2), tmp_path)
    for model in (add_lora(tiny_classifier(), rank=1), tiny_classifier()):
        with pytest.raises(UsageError, match="different adapters"):
            load_adapters(model, tmp_path)
    save_adapters(tiny_classifier(), tmp_path)
    assert not list(tmp_path.iterdir())
