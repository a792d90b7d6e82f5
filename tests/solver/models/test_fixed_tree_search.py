"""The search with fixed shapes, which GPUs use, has the results of the usual search."""

from collections import Counter

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.utils._python_dispatch import TorchDispatchMode

from hf_mwp.solver.models.gts import modeling_gts
from hf_mwp.solver.models.gts.fixed_tree_search import FixedTreeSearch, uses_fixed_shapes
from tests.solver.models.test_modeling_gts import make_case


def search_with_fixed_shapes(case, num_beams, max_length, num_return_sequences, score_margin=None):
    with torch.no_grad():
        memory = case.decoder.encode(case.states, case.mask, case.positions)
        return FixedTreeSearch(case.decoder, memory, num_beams, max_length, num_return_sequences, score_margin).run()


@settings(max_examples=20, deadline=None, derandomize=True)
@given(
    seed=st.integers(0, 1000),
    batch=st.integers(2, 5),
    constants=st.integers(0, 2),
    num_beams=st.integers(1, 7),
    max_length=st.integers(1, 15),
    score_margin=st.none() | st.floats(0, 5),
    data=st.data(),
)
def test_results_equal_those_of_the_usual_search(seed, batch, constants, num_beams, max_length, score_margin, data):
    num_return_sequences = data.draw(st.integers(1, num_beams))
    case = make_case(seed, batch=batch, constants=constants)
    options = {"num_return_sequences": num_return_sequences, "score_margin": score_margin}
    usual = case.search(num_beams, max_length, **options)
    fixed = search_with_fixed_shapes(case, num_beams, max_length, **options)
    assert torch.equal(fixed.sequences, usual.sequences)
    assert torch.equal(fixed.finished, usual.finished)
    assert torch.equal(fixed.finite, usual.finite)
    torch.testing.assert_close(fixed.scores, usual.scores, atol=1e-4, rtol=0)


def test_weights_that_are_not_finite_are_reported():
    case = make_case(3)
    case.states[1] = torch.nan
    fixed = search_with_fixed_shapes(case, 2, 5, 1)
    assert fixed.finite.tolist() == [True, False, True, True]
    assert not fixed.finished[1].any()


class OperatorNames(TorchDispatchMode):
    """Counts the calls of each operator."""

    def __init__(self):
        super().__init__()
        self.calls = Counter()

    def __torch_dispatch__(self, operator, types, args=(), kwargs=None):
        self.calls[operator.overloadpacket] += 1
        return operator(*args, **(kwargs or {}))


def test_the_host_waits_once_per_step(monkeypatch):
    case = make_case(2, batch=9)
    reads = []
    to_list = torch.Tensor.tolist

    def count_reads(tensor):
        reads.append(tensor.shape)
        return to_list(tensor)

    monkeypatch.setattr(torch.Tensor, "tolist", count_reads)
    with OperatorNames() as operators:
        output = search_with_fixed_shapes(case, 5, 15, 5)
    assert operators.calls[torch.ops.aten.nonzero] == 0
    assert operators.calls[torch.ops.aten._local_scalar_dense] == 0
    # All 15 steps, as some beams are never complete.
    assert output.sequences.shape[-1] == 15
    assert reads == [(2,)] * 15


def test_a_step_looks_at_no_value():
    # Tensors on the meta device have none.
    case = make_case(2, batch=9)
    decoder = case.decoder.to("meta")
    with torch.no_grad():
        memory = decoder.encode(case.states.to("meta"), case.mask.to("meta"), case.positions.to("meta"))
        search = FixedTreeSearch(decoder, memory, 5, 15, 5)
        search._add_beams()
        for num_merges in (0, 0, 2):
            assert search._progress().device.type == "meta"
            search._step(num_merges)
    assert search.goal.shape == (45, 12)


def test_the_device_chooses_the_search(monkeypatch):
    assert not uses_fixed_shapes(torch.zeros(1))
    assert uses_fixed_shapes(torch.zeros(1, device="meta"))
    case = make_case(4, batch=3)
    usual = case.search(3, num_return_sequences=3)
    steps = []
    step = FixedTreeSearch._step

    def record_step(search, num_merges):
        steps.append(num_merges)
        step(search, num_merges)

    monkeypatch.setattr(modeling_gts, "uses_fixed_shapes", lambda states: True)
    monkeypatch.setattr(FixedTreeSearch, "_step", record_step)
    fixed = case.search(3, num_return_sequences=3)
    assert steps
    assert torch.equal(fixed.sequences, usual.sequences)


@pytest.mark.parametrize("num_beams", [1, 3])
def test_mixed_precision(num_beams):
    case = make_case(seed=3, batch=16)
    exact = search_with_fixed_shapes(case, num_beams, 9, 1)
    with torch.autocast("cpu", torch.bfloat16):
        mixed = search_with_fixed_shapes(case, num_beams, 9, 1)
    assert exact.finished.any()
    assert torch.equal(mixed.finished, exact.finished)
