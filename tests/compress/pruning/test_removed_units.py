import math

import pytest
import torch
from transformers import AutoModelForSequenceClassification

from hf_mwp.compress.models.architecture import layer_parts
from hf_mwp.compress.pruning import HeadGates, RemovedUnits, UnitScores, cut_teacher, mask_teacher, prune
from hf_mwp.compress.pruning.knowledgeable_scores import count_units
from hf_mwp.utils.usage_error import UsageError
from tests.compress.pruning.encoders import CLASSES, FOREIGN, tiny_batch, tiny_encoder
from tests.tiny import tiny_problems, tiny_processor, tiny_solver


def scores(heads, neurons):
    return UnitScores(torch.tensor(heads, dtype=torch.float64), torch.tensor(neurons, dtype=torch.float64))


SCORES = scores([[0.5, 0.1, 0.4], [0.2, 0.9, 0.3]], [[8.0, 1.0, 2.0, 3.0], [4.0, 7.0, 5.0, 6.0]])


def test_the_lowest_go_over_all_layers():
    for sparsity, heads, neurons in (
        (0.0, {}, {}),
        # 0.6 heads are 1, 0.8 neurons too.
        (0.1, {0: [1]}, {0: [1]}),
        # 1.5 heads are 2, to the even one; neither knows of the other's order.
        (0.25, {0: [1], 1: [0]}, {0: [1, 2]}),
        (0.5, {0: [1], 1: [0, 2]}, {0: [1, 2, 3], 1: [0]}),
        (0.75, {0: [1, 2], 1: [0, 2]}, {0: [1, 2, 3], 1: [0, 2, 3]}),
    ):
        found = RemovedUnits.lowest(SCORES, sparsity)
        assert (found.heads, found.neurons) == (heads, neurons), sparsity
    # Half a unit is rounded to the even number: 2 of 5 * 0.5.
    assert RemovedUnits.lowest(scores([[1.0] * 5], [[1.0] * 7]), 0.5) == RemovedUnits({0: [0, 1]}, {0: [0, 1, 2, 3]})
    # Where a layer has fewer units, what is not there is not counted.
    uneven = scores([[0.1, math.nan], [0.2, 0.3]], [[1.0, 2.0], [math.nan, math.nan]])
    assert RemovedUnits.lowest(uneven, 0.5) == RemovedUnits({0: [0], 1: [0]}, {0: [0]})


def test_counts_of_a_layer_are_rounded_to_multiples():
    neurons = torch.arange(48.0).view(2, 24)
    # Of 48 neurons the lowest 20 lie in the first layer: 2.5 times 8, to the even one; 0 in the second.
    found = RemovedUnits.lowest(UnitScores(SCORES.heads, neurons), 20 / 48, round_to=8)
    assert found.neurons == {0: list(range(16))}
    # 28: all of the first, and 4 of the second, half of 8, which are none; 29: 5 of the second are 8.
    assert RemovedUnits.lowest(UnitScores(SCORES.heads, neurons), 28 / 48, round_to=8).neurons == {0: list(range(24))}
    found = RemovedUnits.lowest(UnitScores(SCORES.heads, neurons), 29 / 48, round_to=8)
    assert found.neurons == {0: list(range(24)), 1: list(range(8))}
    # Heads as columns: 1 and 2 of width 4 are half of 8, to the even one, and 8; those of width 16 stay.
    for width, heads in ((4, {1: [0, 2]}), (16, {0: [1], 1: [0, 2]}), (None, {0: [1], 1: [0, 2]})):
        assert RemovedUnits.lowest(SCORES, 0.5, round_to=8 if width else None, head_dim=width).heads == heads


@pytest.mark.parametrize("sparsity", [-0.1, 1.0, math.nan, 5])
def test_sparsities_are_shares(sparsity):
    with pytest.raises(UsageError, match=f"sparsity.* {sparsity}"):
        RemovedUnits.lowest(SCORES, sparsity)


def test_an_empty_teacher_is_refused():
    with pytest.raises(UsageError, match=r"0\.95 .*\b6 heads"):
        RemovedUnits.lowest(SCORES, 0.95)
    with pytest.raises(UsageError, match=r"0\.95 .*\b8 neurons"):
        RemovedUnits.lowest(UnitScores(torch.rand(9, 9), SCORES.neurons), 0.95)


@pytest.mark.parametrize("name", [*CLASSES, *FOREIGN])
def test_cut_is_masked_is_reloaded(name, tmp_path):
    teacher = tiny_encoder(name, "ForSequenceClassification")
    batch = tiny_batch(teacher)
    weights = [each.clone() for each in teacher.parameters()]
    # The first layer loses all heads, the last all neurons.
    removed = RemovedUnits({0: [0, 1, 2, 3], 1: [2]}, {0: [1, 5], 2: list(range(20))})
    cut, masked = (make(teacher, removed) for make in (cut_teacher, mask_teacher))
    with torch.no_grad():
        before = teacher(**batch).logits
        expected = masked(**batch).logits
        torch.testing.assert_close(cut(**batch).logits, expected, rtol=0, atol=1e-6)
        assert not torch.allclose(before, expected, atol=1e-3)
        kept = prune(teacher, removed.heads, removed.neurons)(**batch).logits
        has_biases = layer_parts(teacher)[0].output.bias is not None
        assert torch.allclose(kept, expected, atol=1e-3) != has_biases
        cut.save_pretrained(tmp_path)
        again = AutoModelForSequenceClassification.from_pretrained(tmp_path)
        torch.testing.assert_close(again(**batch).logits, expected, rtol=0, atol=1e-6)
    assert all(torch.equal(a, b) for a, b in zip(weights, teacher.parameters(), strict=True))
    assert HeadGates.found_on(teacher) is None


def test_a_sublayer_without_units_adds_nothing():
    teacher = tiny_encoder("bert", attn_implementation="eager")
    batch = tiny_batch(teacher)
    removed = RemovedUnits({1: [0, 1, 2, 3]}, {1: list(range(20))})
    layer = teacher.encoder.layer[1]
    with torch.no_grad():
        inside = teacher(**batch, output_hidden_states=True).hidden_states[1]
        found = cut_teacher(teacher, removed)(**batch, output_hidden_states=True).hidden_states[2]
        torch.testing.assert_close(found, layer.output.LayerNorm(layer.attention.output.LayerNorm(inside)))


def test_a_sparse_solver_solves():
    processor = tiny_processor()
    teacher = tiny_solver(processor)
    removed = RemovedUnits.lowest(UnitScores.random(teacher, 0), 0.5)
    columns = processor.encode(tiny_problems(4), with_labels=True)
    rows = [dict(zip(columns, values, strict=True)) for values in zip(*columns.values(), strict=True)]
    batch = teacher.make_collator(processor)(rows)
    cut = cut_teacher(teacher, removed)
    masked = mask_teacher(teacher, removed)
    with torch.no_grad():
        ours, theirs = (model.eval()(**batch).loss for model in (cut, masked))
    for left, whole in zip(count_units(cut), count_units(teacher), strict=True):
        assert sum(left) == sum(whole) / 2
    torch.testing.assert_close(ours, theirs, rtol=0, atol=1e-6)


def test_a_gated_teacher_is_refused():
    teacher = tiny_encoder("bert")
    with HeadGates(teacher):
        for make in (cut_teacher, mask_teacher):
            with pytest.raises(UsageError, match="gates"):
                make(teacher, RemovedUnits({}, {}))
