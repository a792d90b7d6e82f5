"""The clocks, counters and tables of the benchmarks; no timing is asserted."""

import sys
from functools import partial
from pathlib import Path

import pytest
import torch

import hf_mwp


@pytest.fixture(scope="module")
def measuring():
    folder = str(Path(__file__).parents[2] / "examples" / "benchmarks")
    sys.path.insert(0, folder)
    import measuring

    yield measuring
    sys.path.remove(folder)


def test_matching_of_hidden_states(measuring, monkeypatch):
    import hidden_matching

    small = {"num_hidden_layers": 3, "hidden_size": 12, "num_attention_heads": 2, "intermediate_size": 24}
    monkeypatch.setattr(hf_mwp, "MwpStudentConfig", partial(hf_mwp.MwpStudentConfig, **small))
    figures = hidden_matching.measure(
        hidden_matching.parse_arguments(["--rounds=1", "--batch-size=2", "--tokens=4", "--width=24"])
    )
    names = {"logits alone", *hidden_matching.losses()}
    assert all(set(seconds) == names for seconds in figures["seconds"].values())
    assert hidden_matching.report(figures).count("%") == 2 * len(names)


def test_decoders(measuring):
    import decoders

    folder = str(Path(__file__).parents[2] / "model_cards" / "mwp-student-3L-gts-math23k-small")
    args = decoders.parse_arguments([folder, "--dataset=math23k", "--problems=2", "--rounds=1"])
    [(name, milliseconds)] = decoders.measure(args).items()
    assert set(milliseconds) == set(decoders.WAYS)
    assert all(each > 0 for each in milliseconds.values())
    assert name in decoders.report({name: milliseconds}, args)


def test_views_are_not_counted(measuring):
    x = torch.ones(3, 4)
    with measuring.OperatorCounter() as counter:
        x.view(2, 6).t()[0]
    assert counter.calls == 0
    with measuring.OperatorCounter() as counter:
        (x.t() @ x).tanh_()
    assert counter.calls == 2


def test_backward_is_counted(measuring):
    x = torch.ones(3, requires_grad=True)
    with measuring.OperatorCounter() as counter:
        loss = x.tanh().sum()
    assert counter.calls == 2
    with measuring.OperatorCounter() as counter:
        loss.backward()
    assert counter.calls >= 2


def test_peak_memory_is_what_is_held_at_one_time(measuring):
    given = torch.ones(1000)
    with measuring.PeakMemory() as memory:
        first = given + 1
        second = first * 2
        del first, second
        given.mul_(2)
        given[:500].neg_()
        for _ in range(10):
            given + 3
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


def test_clock_adds_up(measuring):
    seen = []
    total = measuring.clock(seen.append, "abc", warmup=2)
    assert seen == list("ababc")
    assert total.laps == 3
    assert total.wall > 0


def test_sections_are_replaced(measuring, tmp_path):
    path = tmp_path / "RESULTS.md"
    measuring.write_section("One", "first", path)
    measuring.write_section("Two", "second", path)
    measuring.write_section("One", measuring.table(["a", "b"], [["x", 1]]), path)
    text = path.read_text(encoding="utf-8")
    assert text.count("## ") == 2
    assert "first" not in text and "second" in text
    assert "| a  |  b |\n| -- | -: |\n| x  |  1 |" in text


@pytest.mark.slow
def test_distillation_is_measured_with_and_without_its_cache(measuring, tmp_path):
    import distillation

    student = {"num_hidden_layers": 1, "hidden_size": 16, "intermediate_size": 16, "num_attention_heads": 2}
    args = distillation.parse_arguments(["--problems", "12", "--rounds", "1", "--batch-size", "4", "--widths", "24"])
    figures = distillation.measure(
        args, student, lambda width: student | {"num_hidden_layers": 3, "hidden_size": width}
    )
    text = distillation.report(figures)
    assert len(figures["tables"]) == 2
    for label, each in figures["tables"].items():
        assert f"### {label}" in text and each["rows"] == 12
        assert all(seconds > 0 for seconds in (*each["epochs"].values(), each["build"], each["open"], each["pass"]))
    assert "| cached " in text and "in passes of the teacher" in text


@pytest.mark.slow
def test_steps_are_measured_of_all_weights_and_of_adapters(measuring):
    import fine_tuning

    args = fine_tuning.parse_arguments(["--quick"])
    figures = fine_tuning.measure(args)["2x24"]
    # Adapters of rank 8 for two 24 x 24 layers' queries and values, with the decoder: far from all weights.
    assert figures["LoRA"]["trained"] < figures["all weights"]["trained"] / 4
    assert all(seconds > 0 for way in figures.values() for seconds in way["seconds"].values())
    assert "| 2x24, LoRA, rank 8 |" in fine_tuning.report({"2x24": figures}, args)


def test_solving_is_measured_in_five_ways_by_two_encoders(measuring, tmp_path):
    import solving
    from transformers import pipeline

    from hf_mwp.runtime.plausibility import FEATURES
    from tests.tiny import tiny_processor, tiny_rows, tiny_solver

    processor = tiny_processor(max_length=64)
    tiny_solver(processor).save_pretrained(tmp_path)
    processor.save_pretrained(tmp_path)
    solver = pipeline("math-word-problem", model=str(tmp_path), device="cpu")
    reranker = solving.TimedReranker("zh", {feature.name: 0.0 for feature in FEATURES}, 20, min_beams=8)
    texts = [row["text"] for row in tiny_rows(3)]
    sizes = {"num_hidden_layers": 3, "hidden_size": 24, "num_attention_heads": 2, "intermediate_size": 24}
    large = solving.with_large_encoder(solver, texts, [2], sizes)
    assert large(texts, batch_size=2, num_beams=5) == solver(texts, batch_size=2, num_beams=5)
    assert large.model.encoder.large.config.num_hidden_layers == 3 and solver.model.config.num_hidden_layers == 2
    figures = solving.measure(solver, reranker, texts, [1, 2], rounds=1, large=sizes)
    assert len(figures["seconds"]) == 20 and all(seconds > 0 for seconds in figures["seconds"].values())
    # Three problems by two numbers of beams, batch sizes and solvers were ranked, those of the warm-up not counted.
    assert solving.TimedReranker.clock.laps == 24
    text = solving.report(figures, [1, 2])
    assert "| 20 beams, re-ranked, batch 2 |" in text and "| times the published |" in text
    lengths = solving.make_texts(64)
    tokens = [len(processor.encode([text])["input_ids"][0]) for text in lengths.values()]
    assert tokens == [41, 64, 64] and len(lengths["100,000 characters"]) == 100_000
    figures = solving.measure_lengths(solver, {"greedy": {"num_beams": 1}}, batch_size=2)
    assert "| 100,000 characters |" in solving.report_lengths(figures, ["greedy"], 2)


@pytest.mark.slow
def test_memory_is_measured_by_size_of_data(measuring):
    import cache_memory

    student = {"num_hidden_layers": 1, "hidden_size": 16, "intermediate_size": 16, "num_attention_heads": 2}
    figures = {size: cache_memory.measure(size, 1, student, student) for size in (8, 32)}
    # Four times the rows, and half a kilobyte or more for the 40 and more states of 16 numbers in half precision.
    assert figures[32]["cache"] > 3 * figures[8]["cache"] > 3 * 8 * 40 * 16 * 2
    assert figures[8]["anonymous"] > 0
    assert "| 32       |" in cache_memory.report(figures, 1)


def test_pruning_is_measured_beside_its_peer(measuring):
    import pruning

    assert pruning.parse_arguments([]).shapes == ["6x384", "12x768"]
    figures = pruning.measure(pruning.parse_arguments(["--quick"]))["2x16"]
    dense, cut = figures["models"]["dense"], figures["models"]["cut, 50% of heads"]
    # Half of the heads: of each of two layers half of four matrices of 16 x 16 and of three biases.
    assert dense["parameters"] - cut["parameters"] == 2 * (4 * 16 * 8 + 3 * 8)
    assert cut["flops"][2, 8] < dense["flops"][2, 8] and cut["memory"] < dense["memory"]
    assert figures["difference"] < 1e-5 and figures["price"]["event"] > 0
    text = pruning.report({"2x16": figures})
    assert "| cut, 30% of heads and neurons " in text and "part of a training with 100 steps an event" in text


@pytest.mark.slow
def test_deployed_solvers_are_measured(measuring, solver_folder, tmp_path):
    import deploy

    from tests.tiny import tiny_dataset

    pytest.importorskip("onnxruntime")
    pytest.importorskip("onnxscript")
    assert deploy.parse_arguments(["--quick"]).timed == 4
    sizes = {"num_hidden_layers": 3, "hidden_size": 24, "num_attention_heads": 2, "intermediate_size": 24}
    rows = tiny_dataset(3)
    texts = list(rows["text"])
    variants = deploy.make_variants(str(solver_folder), tmp_path, tiny_dataset(8, seed=1), sizes)
    assert len(variants) == 9
    disk = {name: deploy.folder_size(each.folder) for name, each in variants.items()}
    assert disk["student, NumPy fp32"] < disk["student, ONNX fp32"] and disk[deploy.STUDENT] < disk[deploy.BERT]
    solvers = deploy.make_solvers(variants, texts, sizes)
    # The large encoder's states are thrown away, and NumPy computes what PyTorch does.
    same = [deploy.BERT, deploy.STUDENT, "student, NumPy fp32", "student, ONNX fp32"]
    equations = [[each["equation"] for each in solvers[name](texts, batch_size=1, num_beams=1)] for name in same]
    assert equations[1:] == equations[:-1]
    times = deploy.measure_times(solvers, texts, rounds=2)
    assert len(times) == 9 * 2 * 2 and all((seconds > 0).all() for seconds in times.values())
    assert len(times[deploy.BERT, "greedy", 1]) == 3 and len(times[deploy.BERT, "greedy", 32]) == 1
    starts = dict.fromkeys(variants, (1.0, 0.5, 2**20))
    name = "student, NumPy int8"
    starts[name] = deploy.measure_start(variants[name], texts[0], 1)
    assert 0 < starts[name][1] < 10 and starts[name][2] > 10 * 2**20
    right = deploy.count_right(solvers, rows)
    assert right["student, NumPy fp32", "greedy"] == right[deploy.STUDENT, "greedy"]
    text = deploy.report(times, starts, right, disk, 3, 3)
    assert "| 30% of heads cut, ONNX int8 " in text and "| right, default search |" in text
