"""Adapters in encoders of all architectures: added, trained, merged."""

import peft
import pytest
import torch
from transformers import AutoModelForSequenceClassification, ErnieConfig, ErnieModel

from hf_mwp import add_lora, merge_lora, prune_heads
from hf_mwp.compress.models.lora import load_adapters, merged_weights, save_adapters
from hf_mwp.utils.usage_error import UsageError
from tests.compress.pruning.encoders import tiny_batch, tiny_encoder
from tests.slow_parameters import slow_after
from tests.tiny import tiny_classifier, tiny_processor, tiny_solver
from tests.tiny_causal import tiny_causal


def outputs(model):
    with torch.no_grad():
        return model.eval()(**tiny_batch(model)).to_tuple()[0]


def trained(model):
    """The model as after a training: its trainable parameters are changed."""
    torch.manual_seed(1)
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.requires_grad:
                parameter.add_(torch.randn(parameter.shape) * 0.1)
    return model


@pytest.mark.parametrize(
    "name", slow_after(1, ["mwp_student", "bert", "distilbert", "albert", "deberta-v3", "modernbert"])
)
def test_merged_equals_adapted_equals_reloaded(name, tmp_path):
    model = tiny_encoder(name, "ForSequenceClassification")
    names = list(model.state_dict())
    before = outputs(model)
    add_lora(model, rank=2, tokens=[6, 9])
    # New adapters change nothing.
    assert torch.equal(outputs(model), before)
    adapted = outputs(trained(model))
    assert (adapted - before).abs().max() > 0.01
    weights = merged_weights(model)
    merge_lora(model)
    assert list(model.state_dict()) == names
    for weight_name, weight in model.state_dict().items():
        assert torch.equal(weights[weight_name], weight)
    for parameter in model.parameters():
        assert parameter.requires_grad
    torch.testing.assert_close(outputs(model), adapted, atol=1e-6, rtol=1e-5)
    model.save_pretrained(tmp_path)
    assert torch.equal(outputs(AutoModelForSequenceClassification.from_pretrained(tmp_path)), outputs(model))


BERT_LINEARS = ["encoder.layer.{}.attention.self.query", "encoder.layer.{}.attention.self.value"]


@pytest.mark.parametrize(
    ("name", "linears", "heads"),
    [
        ("bert", BERT_LINEARS, ["pooler"]),
        ("mwp_student", BERT_LINEARS, ["pooler"]),
        ("distilbert", ["transformer.layer.{}.attention.q_lin", "transformer.layer.{}.attention.v_lin"], []),
        ("modernbert", ["layers.{}.attn.Wqkv"], ["head."]),
    ],
)
def test_adapters_and_heads_are_trained(name, linears, heads):
    model = add_lora(tiny_encoder(name, "ForSequenceClassification"), rank=2)
    expected = set()
    for linear in linears:
        for layer in range(3):
            path = f"{model.base_model_prefix}.{linear.format(layer)}"
            expected |= {f"{path}.lora_A.default.weight", f"{path}.lora_B.default.weight"}
    for parameter_name, parameter in model.named_parameters():
        is_in_head = any(head in parameter_name for head in ["classifier", *heads])
        assert parameter.requires_grad == (parameter_name in expected or is_in_head), parameter_name
        expected.discard(parameter_name)
    assert not expected


def test_merged_weight_by_hand():
    model = tiny_encoder("bert")
    attention = model.encoder.layer[0].attention.self
    before = attention.query.weight.detach().clone()
    trained(add_lora(model, rank=2, alpha=6, targets=["query"]))
    down = attention.query.lora_A["default"].weight
    up = attention.query.lora_B["default"].weight
    expected = before + 6 / 2 * (up @ down)
    merge_lora(model)
    torch.testing.assert_close(attention.query.weight, expected)


def test_rows_of_tokens_by_hand():
    model = tiny_encoder("bert")
    table = model.embeddings.word_embeddings
    expected = table.weight.detach().clone()
    add_lora(model, rank=1, tokens=[9, 6])
    rows = table.trained_tokens.rows
    table(torch.tensor([[9, 7, 9]])).sum().backward()
    assert rows.grad.tolist() == [[2.0] * 24, [0.0] * 24] and table.weight.grad is None
    with torch.no_grad():
        rows += 1
    expected[[6, 9]] += 1
    assert torch.equal(table(torch.tensor([6, 7])), expected[[6, 7]])
    merge_lora(model)
    assert torch.equal(table.weight, expected)


def test_only_the_encoder_of_a_solver_is_frozen():
    processor = tiny_processor()
    solver = add_lora(tiny_solver(processor, bottleneck_layers=[1], bottleneck_size=4), rank=2)
    frozen = [name for name, parameter in solver.named_parameters() if not parameter.requires_grad]
    assert "encoder.embeddings.word_embeddings.weight" in frozen
    for name in frozen:
        assert name.startswith("encoder.")


def test_pruned_encoder_gets_adapters_and_is_merged():
    model = prune_heads(tiny_encoder("bert"), {0: [0, 1, 2, 3], 1: [2]})
    trained(add_lora(model, rank=2, targets=["query", "attention_output", "intermediate", "output"]))
    assert model.encoder.layer[1].attention.self.query.lora_B["default"].weight.shape == (18, 2)
    adapted = outputs(model)
    torch.testing.assert_close(outputs(merge_lora(model)), adapted, atol=1e-6, rtol=1e-5)
    with pytest.raises(ValueError, match="hf_mwp.merge_lora"):
        prune_heads(add_lora(model, rank=1), {1: [0]})


def test_unknown_encoder_needs_targets():
    sizes = {"vocab_size": 40, "hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2}
    model = ErnieModel(ErnieConfig(**sizes, intermediate_size=24))
    with pytest.raises(UsageError, match="'ernie'.* query, key, value, dense"):
        add_lora(model, rank=2)
    add_lora(model, rank=2, targets=["query"])
    assert sum(".lora_A." in name for name, _ in model.named_parameters()) == 2


@pytest.mark.parametrize(
    ("targets", "adapted"),
    [(None, {"q_proj", "v_proj"}), (["key"], {"k_proj"}), (["k_proj", "gate_proj"], {"k_proj", "gate_proj"})],
)
def test_causal_model_gets_adapters_by_field_or_module_name(targets, adapted):
    model = add_lora(tiny_causal("qwen2"), rank=2, targets=targets)
    names = set()
    for name, _ in model.named_parameters():
        if ".lora_A." in name:
            names.add(name.split(".")[-4])
    assert names == adapted


def test_wrong_options_raise():
    with pytest.raises(UsageError, match="'valeu'.* query, key, value, attention_output, interm"):
        add_lora(tiny_classifier(), rank=1, targets=["query", "valeu"])
    with pytest.raises(ValueError, match="positive integer.* 0"):
        add_lora(tiny_classifier(), rank=0)


@pytest.mark.filterwarnings("ignore:`is_gradient_checkpointing` is deprecated")
def test_model_with_adapters_raises():
    config = peft.LoraConfig(target_modules=["query"])
    for model in (
        add_lora(tiny_classifier(), rank=1),
        peft.get_peft_model(tiny_encoder("bert"), config).base_model.model,
    ):
        with pytest.raises(UsageError, match="adapters.*`hf_mwp.merge_lora`"):
            add_lora(model, rank=1)


def test_adapters_of_another_model_raise(tmp_path):
    save_adapters(add_lora(tiny_classifier(), rank=2), tmp_path)
    load_adapters(add_lora(tiny_classifier(), rank=2), tmp_path)
    for model in (add_lora(tiny_classifier(), rank=1), tiny_classifier()):
        with pytest.raises(UsageError, match="different adapters"):
            load_adapters(model, tmp_path)
    save_adapters(tiny_classifier(), tmp_path)
    assert not list(tmp_path.iterdir())
