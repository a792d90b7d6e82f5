import torch
from torch import nn

from hf_mwp.solver.metrics import compare_latency, count_flops, count_parameters, describe_compression, peak_memory


def tied_model():
    model = nn.ModuleDict({"table": nn.Embedding(10, 4), "output": nn.Linear(4, 10)})
    model["output"].weight = model["table"].weight
    return model


def test_parameters_are_counted_once():
    model = tied_model()
    assert count_parameters(model) == 10 * 4 + 10
    assert count_parameters(model, embeddings=False) == 10
    model["output"].bias.requires_grad_(False)
    assert count_parameters(model, trainable_only=True) == 40


def test_flops_of_a_linear_layer():
    assert count_flops(nn.Linear(8, 4), {"input": torch.ones(2, 8)}) == 2 * 2 * 8 * 4


def test_flops_see_fused_attention():
    query = torch.ones(1, 2, 8, 16)
    attention = nn.functional.scaled_dot_product_attention
    # Two products of 8 x 16 x 8 for each of two heads.
    assert count_flops(lambda: attention(query, query, query)) == 2 * 2 * (2 * 8 * 16 * 8)


def test_peak_memory_counts_what_lives_at_once():
    start = torch.ones(10, 100)

    def function():
        first = start * 2
        second = first + 1
        del first
        return (second + 1).view(-1)[:10]

    assert peak_memory(function) == 2 * 4000


def test_peak_memory_of_a_step_is_linear_in_the_batch():
    layers = nn.Sequential(nn.Linear(20, 20), nn.Tanh(), nn.Linear(20, 20))

    def step(batch_size):
        def function():
            layers(torch.ones(batch_size, 20)).sum().backward()
            layers.zero_grad()

        return peak_memory(function)

    small = step(100)
    middle = step(200)
    large = step(400)
    assert large - middle == 2 * (middle - small) > 0


def test_latency_is_the_median(monkeypatch):
    ticks = iter(tick for second in (9, 1, 2, 3, 4, 5, 6, 7, 8, 10) for tick in (0, second))
    monkeypatch.setattr("time.perf_counter", lambda: next(ticks))
    assert compare_latency({"a": lambda: None}, repeats=10, warmup=0) == {"a": 5.5}


def test_functions_are_timed_in_turns():
    calls = []
    result = compare_latency({"a": lambda: calls.append("a"), "b": lambda: calls.append("b")}, repeats=2, warmup=1)
    assert calls == ["a", "b"] * 3
    assert all(second >= 0 for second in result.values())


def test_compression_with_and_without_embeddings():
    def model(width):
        return nn.Sequential(nn.Embedding(10, width), nn.Linear(width, width, bias=False))

    assert describe_compression(model(2), model(4)) == (
        "The student has 24 parameters (43% of its teacher's) and, without embeddings, 4 parameters (25% of its "
        "teacher's)."
    )
    assert "56 parameters (233% of its teacher's)" in describe_compression(model(4), model(2))
