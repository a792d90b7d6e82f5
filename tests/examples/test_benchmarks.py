"""The clocks, counters and reports of the benchmarks; no time is asserted."""

import sys
from fractions import Fraction
from functools import partial
from types import SimpleNamespace

import pytest
import torch
from transformers import pipeline

import hf_mwp
from hf_mwp.runtime.expressions import Expression
from hf_mwp.runtime.plausibility import FEATURES
from tests.examples.scripts import EXAMPLES
from tests.tiny import tiny_dataset, tiny_processor, tiny_rows, tiny_solver


SHAPE = {"num_hidden_layers": 3, "hidden_size": 24, "num_attention_heads": 2, "intermediate_size": 24}
SMALL_SHAPE = {"num_hidden_layers": 1, "hidden_size": 16, "num_attention_heads": 2, "intermediate_size": 16}


@pytest.fixture(scope="module", autouse=True)
def measuring():
    folder = str(EXAMPLES / "benchmarks")
    sys.path.insert(0, folder)
    import measuring

    yield measuring
    sys.path.remove(folder)


@pytest.fixture
def count_calls(measuring):
    def count_calls(compute):
        with measuring.OperatorCounter() as counter:
            compute()
        return counter.calls

    return count_calls


@pytest.mark.parametrize(
    ("thought", "equation"),
    [
        (("NUM", 1), "N1"),
        (("CON", Fraction(1, 2)), "0.5"),
        (("MUL", ("INV", ("NUM", 1)), ("NUM", 0), ("CON", Fraction(100))), "N0*100/N1"),
        (("ADD", ("NEG", ("NUM", 0)), ("CON", Fraction(1))), "1-N0"),
        (("ADD", ("NEG", ("NUM", 0)), ("NEG", ("NUM", 1))), "0-N0-N1"),
        (("HALF", ("ROOT", ("NUM", 0))), "N0^0.5/2"),
        (("NEG", ("INV", ("NUM", 0))), "0-1/N0"),
    ],
)
def test_thought_of_the_reference_as_an_expression(thought, equation):
    from athena import expression_of

    assert expression_of(thought).canonical() == Expression.from_infix(equation).canonical()


def test_views_are_not_counted(count_calls):
    x = torch.ones(3, 4)
    assert count_calls(lambda: x.view(2, 6).t()[0]) == 0
    assert count_calls(lambda: (x.t() @ x).tanh_()) == 2


def test_backward_pass_is_counted(count_calls):
    x = torch.ones(3, requires_grad=True)
    assert count_calls(lambda: x.tanh().sum()) == 2
    loss = x.tanh().sum()
    assert count_calls(loss.backward) >= 2


def test_dropout_and_attention_are_one_call_each_on_a_gpu(count_calls, measuring):
    states = torch.ones(2, 1, 6, 8, device="meta")
    mask = torch.ones(2, 1, 6, 6, dtype=torch.bool, device="meta")

    def compute():
        dropped = torch.nn.functional.dropout(states, p=0.1)
        return torch.nn.functional.scaled_dot_product_attention(dropped, dropped, dropped, mask, dropout_p=0.1)

    with measuring.GpuOperators():
        assert compute().shape == states.shape
        calls = count_calls(compute)
    # Dropout, attention, and three calls that turn the mask into what is added to the scores.
    assert calls == 5
    assert count_calls(compute) > 10


def test_peak_memory_is_the_most_at_one_time(measuring):
    before = torch.ones(1000)
    with measuring.PeakMemory() as memory:
        first = before + 1
        second = first * 2
        del first, second
        before.mul_(2)
        before[:500].neg_()
        for _ in range(10):
            before + 3
    assert memory.peak == 2 * 4000


def test_peak_memory_grows_with_the_batch(measuring):
    layer = torch.nn.Linear(16, 16)
    peaks = []
    for rows in (100, 200, 300):
        layer.zero_grad()
        with measuring.PeakMemory() as memory:
            layer(torch.ones(rows, 16)).tanh().sum().backward()
        peaks.append(memory.peak)
    assert peaks[2] - peaks[1] == pytest.approx(peaks[1] - peaks[0], rel=0.01)


def test_clock_counts_the_laps_after_the_warm_up(measuring):
    items = []
    total = measuring.clock(items.append, "abc", warmup=2)
    assert items == list("ababc")
    assert total.laps == 3
    assert total.wall > 0


def test_section_is_replaced(measuring, tmp_path):
    path = tmp_path / "RESULTS.md"
    measuring.write_section("One", "first", path)
    measuring.write_section("Two", "second", path)
    measuring.write_section("One", measuring.table(["a", "b"], [["x", 1]]), path)
    text = path.read_text(encoding="utf-8")
    assert text.count("## ") == 2
    assert "first" not in text
    assert "second" in text
    assert "| a  |  b |\n| -- | -: |\n| x  |  1 |" in text


def test_weights_of_the_decoder_benchmark_need_no_full_batch(monkeypatch, tmp_path):
    import measure_gts

    processor = tiny_processor(max_length=64)
    monkeypatch.setattr(measure_gts, "new_solver", tiny_solver)
    rows = measure_gts.encode(processor, tiny_dataset(3))
    args = SimpleNamespace(cache_dir=tmp_path, fit_steps=1)
    fitted = measure_gts.fitted_solver(args, processor, rows)
    cached = measure_gts.fitted_solver(args, processor, rows)
    assert torch.equal(fitted.decoder.constant_embedding, cached.decoder.constant_embedding)


@pytest.mark.slow
def test_losses_on_hidden_states_are_measured(monkeypatch):
    import hidden_matching

    monkeypatch.setattr(hf_mwp, "MwpStudentConfig", partial(hf_mwp.MwpStudentConfig, **SHAPE | {"hidden_size": 12}))
    args = hidden_matching.parse_arguments(["--rounds=1", "--batch-size=2", "--tokens=4", "--width=24"])
    figures = hidden_matching.measure(args)
    names = {"logits alone", *hidden_matching.losses()}
    for seconds in figures["seconds"].values():
        assert seconds.keys() == names
    assert hidden_matching.report(figures).count("%") == 2 * len(names)


@pytest.mark.slow
def test_causal_language_models_are_measured(monkeypatch):
    import causal

    sizes = {"num_hidden_layers": 2, "hidden_size": 32, "intermediate_size": 48, "num_attention_heads": 4}
    monkeypatch.setattr(causal, "TEACHER", sizes)
    monkeypatch.setattr(causal, "STUDENT", sizes | {"hidden_size": 16})
    sizes_of_batches = ["--batch-size=2", "--tokens=8", "--vocabulary=100", "--positions=4", "--large-vocabulary=200"]
    args = causal.parse_arguments(["--rounds=1", *sizes_of_batches])
    steps = causal.measure_steps(args)
    divergences = causal.measure_divergences(args)
    assert divergences["whole"]["loss"] == pytest.approx(divergences["in chunks"]["loss"], rel=1e-6)
    text = causal.report(args, steps, divergences)
    assert all(name in text for name in (causal.FINE_TUNING, causal.LOGITS, causal.HIDDEN))


@pytest.mark.slow
def test_decoders_are_measured(published_weights):
    import decoders

    folder = str(EXAMPLES.parent / "model_cards" / "mwp-student-3L-gts-math23k-small")
    args = decoders.parse_arguments([folder, "--dataset=math23k", "--problems=2", "--rounds=1"])
    [(name, milliseconds)] = decoders.measure(args).items()
    assert milliseconds.keys() == set(decoders.WAYS)
    assert min(milliseconds.values()) > 0
    assert name in decoders.report({name: milliseconds}, args)


@pytest.mark.slow
def test_distillation_is_measured_with_and_without_its_cache():
    import distillation

    args = distillation.parse_arguments(["--problems", "12", "--rounds", "1", "--batch-size", "4", "--widths", "24"])
    teacher = SMALL_SHAPE | {"num_hidden_layers": 3}
    figures = distillation.measure(args, SMALL_SHAPE, lambda width: teacher | {"hidden_size": width})
    text = distillation.report(figures)
    assert len(figures["tables"]) == 2
    for label, table in figures["tables"].items():
        assert f"### {label}" in text
        assert table["rows"] == 12
        assert min(*table["epochs"].values(), table["build"], table["open"], table["pass"]) > 0
    assert "| cached " in text


@pytest.mark.slow
def test_steps_of_all_weights_and_of_adapters_are_measured():
    import fine_tuning

    args = fine_tuning.parse_arguments(["--quick"])
    figures = fine_tuning.measure(args)["2x24"]
    # Adapters of rank 8 for two 24 x 24 layers' queries and values, with the decoder.
    assert figures["LoRA"]["trained"] < figures["all weights"]["trained"] / 4
    for way in figures.values():
        assert min(way["seconds"].values()) > 0
    assert "| 2x24, LoRA, rank 8 |" in fine_tuning.report({"2x24": figures}, args)


@pytest.fixture
def solver(solver_folder):
    return pipeline("math-word-problem", model=str(solver_folder), device="cpu")


@pytest.mark.slow
def test_solving_is_measured_with_two_encoders(solver):
    import solving

    texts = [row["text"] for row in tiny_rows(3)]
    large = solving.with_large_encoder(solver, [texts], [2], SHAPE)
    assert large(texts, batch_size=2, num_beams=5) == solver(texts, batch_size=2, num_beams=5)
    assert large.model.encoder.large.config.num_hidden_layers == 3
    reranker = solving.TimedReranker("zh", {feature.name: 0.0 for feature in FEATURES}, 20, min_beams=8)
    figures = solving.measure(solver, reranker, texts, [1, 2], rounds=1, large=SHAPE)
    assert len(figures["seconds"]) == 20
    assert min(figures["seconds"].values()) > 0
    # Three problems by two numbers of beams, batch sizes and solvers were ranked, without the warm-up.
    assert solving.TimedReranker.clock.laps == 24
    assert "| 20 beams, re-ranked, batch 2 |" in solving.report(figures, [1, 2])


@pytest.mark.slow
def test_texts_of_different_lengths_are_measured(solver):
    import solving

    texts = solving.make_texts(64)
    encoded = solver.processor.encode(list(texts.values()))
    assert [len(ids) for ids in encoded["input_ids"]] == [41, 64, 64]
    assert len(texts["100,000 characters"]) == 100_000
    figures = solving.measure_lengths(solver, {"greedy": {"num_beams": 1}}, batch_size=2)
    assert "| 100,000 characters |" in solving.report_lengths(figures, ["greedy"], 2)


@pytest.mark.slow
def test_memory_of_a_cache_grows_with_the_data():
    import cache_memory

    figures = {size: cache_memory.measure(size, 1, SMALL_SHAPE, SMALL_SHAPE) for size in (8, 32)}
    # Four times the rows, and half a kilobyte or more for the 40 and more states of 16 numbers in half precision.
    assert figures[32]["cache"] > 3 * figures[8]["cache"] > 3 * 8 * 40 * 16 * 2
    assert figures[8]["anonymous"] > 0
    assert "| 32       |" in cache_memory.report(figures, 1)


@pytest.mark.slow
def test_pruned_models_are_measured():
    import pruning

    figures = pruning.measure(pruning.parse_arguments(["--quick"]))["2x16"]
    dense = figures["models"]["dense"]
    pruned = figures["models"]["cut, 50% of heads"]
    # Half of the heads: of each of two layers half of four matrices of 16 x 16 and of three biases.
    assert dense["parameters"] - pruned["parameters"] == 2 * (4 * 16 * 8 + 3 * 8)
    assert pruned["flops"][2, 8] < dense["flops"][2, 8]
    assert pruned["memory"] < dense["memory"]
    assert figures["difference"] < 1e-5
    assert figures["price"]["event"] > 0
    assert "| cut, 30% of heads and neurons " in pruning.report({"2x16": figures})


@pytest.mark.slow
def test_deployed_solvers_are_measured(solver_folder, tmp_path):
    import deploy

    pytest.importorskip("onnxruntime")
    pytest.importorskip("onnxscript")
    rows = tiny_dataset(3)
    texts = list(rows["text"])
    variants = deploy.make_variants(str(solver_folder), tmp_path, tiny_dataset(8, seed=1), SHAPE)
    sizes = {name: deploy.folder_size(variant.folder) for name, variant in variants.items()}
    assert sizes["student, NumPy fp32"] < sizes["student, ONNX fp32"]
    solvers = deploy.make_solvers(variants, texts, SHAPE)
    times = deploy.measure_times(solvers, texts, rounds=2)
    assert len(times) == len(variants) * 2 * 2
    assert len(times[deploy.BERT, "greedy", 1]) == 3
    start = deploy.measure_start(variants["student, NumPy int8"], texts[0], 1)
    assert start[2] > 10 * 2**20
    # The large encoder's states are not used, and NumPy computes what PyTorch does.
    equations = set()
    for name in (deploy.BERT, deploy.STUDENT, "student, NumPy fp32", "student, ONNX fp32"):
        records = solvers[name](texts, batch_size=1, num_beams=1)
        equations.add(tuple(record["equation"] for record in records))
    assert len(equations) == 1
    right = deploy.count_right(solvers, rows)
    assert right["student, NumPy fp32", "greedy"] == right[deploy.STUDENT, "greedy"]
    text = deploy.report(times, dict.fromkeys(variants, start), right, sizes, 3, 3)
    assert "| 30% of heads cut, ONNX int8 " in text
