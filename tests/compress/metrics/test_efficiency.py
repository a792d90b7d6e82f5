import pytest
import torch
from torch import nn

from hf_mwp.solver.metrics import compare_latency, count_flops, count_parameters, describe_compression, peak_memory
from tests.tiny_causal import tiny_causal


def test_tied_parameters_are_counted_once():
    model = nn.ModuleDict({"table": nn.Embedding(10, 4), "output": nn.Linear(4, 10)})
    model["output"].weight = model["table"].weight
    assert count_parameters(model) == 10 * 4 + 10
    assert count_parameters(model, embeddings=False) == 10
    model["output"].bias.requires_grad_(False)
    assert count_parameters(model, trainable_only=True) == 40


@pytest.mark.parametrize("is_tied", [True, False])
def test_embeddings_of_a_language_model_are_its_tables(is_tied):
    model = tiny_causal("llama", tie_word_embeddings=is_tied)
    table = model.config.vocab_size * 32
    # Queries and outputs, keys and values, three matrices of neurons and two norms in each of two layers.
    others = 2 * (2 * 32 * 32 + 2 * 16 * 32 + 3 * 48 * 32 + 2 * 32) + 32
    assert count_parameters(model, embeddings=False) == others
    assert count_parameters(model) == others + table * (1 if is_tied else 2)


def test_flops_of_a_linear_layer():
    assert count_flops(nn.Linear(8, 4), {"input": torch.ones(2, 8)}) == 2 * 2 * 8 * 4


def test_flops_of_fused_attention():
    query = torch.ones(1, 2, 8, 16)
    attention = nn.functional.scaled_dot_product_attention
    # Two products of 8 x 16 x 8 for each of two heads.
    assert count_flops(lambda: attention(query, query, query)) == 2 * 2 * (2 * 8 * 16 * 8)


def test_peak_memory_is_that_of_tensors_that_live_at_once():
    start = torch.ones(10, 100)

    def function():
        first = start * 2
        second = first + 1
        del first
        return (second + 1).view(-1)[:10]

    assert peak_memory(function) == 2 * 4000


def test_peak_memory_of_a_step_is_linear_in_the_batch():
    layers = nn.Sequential(nn.Linear(20, 20), nn.Tanh(), nn.Linear(20, 20))

    def memory(batch_size):
        def step():
            layers(torch.ones(batch_size, 20)).sum().backward()
            layers.zero_grad()

        return peak_memory(step)

    assert memory(400) - memory(200) == 2 * (memory(200) - memory(100)) > 0


def test_latency_is_the_median(monkeypatch):
    ticks = []
    for seconds in (9, 1, 2, 3, 4, 5, 6, 7, 8, 10):
        ticks += [0, seconds]
    monkeypatch.setattr("time.perf_counter", iter(ticks).__next__)
    assert compare_latency({"a": lambda: None}, repeats=10, warmup=0) == {"a": 5.5}


def test_functions_are_timed_in_turns():
    calls = []
    functions = {"a": lambda: calls.append("a"), "b": lambda: calls.append("b")}
    compare_latency(functions, repeats=2, warmup=1)
    assert calls == ["a", "b"] * 3


@pytest.mark.parametrize(
    ("student_width", "teacher_width", "numbers"), [(2, 4, "24 43 4 25"), (4, 2, "56 233 16 400")]
)
def test_compression_with_and_without_embeddings(student_width, teacher_width, numbers):
    models = []
    for width in (student_width, teacher_width):
        models.append(nn.Sequential(nn.Embedding(10, width), nn.Linear(width, width, bias=False)))
    description = describe_compression(*models)
    assert "".join(character if character.isdigit() else " " for character in description).split() == numbers.split()
