import math

import pytest
import torch
from transformers import AutoModelForSequenceClassification

from hf_mwp.compress.models.architecture import layer_parts
from hf_mwp.compress.pruning import HeadGates, RemovedUnits, UnitScores, cut_teacher, mask_teacher, prune
from hf_mwp.utils.usage_error import UsageError
from tests.compress.pruning.encoders import first_output, tiny_batch, tiny_encoder
from tests.slow_parameters import slow_after


def scores_of(heads, neurons):
    return UnitScores(torch.tensor(heads, dtype=torch.float64), torch.tensor(neurons, dtype=torch.float64))


NAN = math.nan
SCORES = scores_of([[0.5, 0.1, 0.4], [0.2, 0.9, 0.3]], [[8.0, 1.0, 2.0, 3.0], [4.0, 7.0, 5.0, 6.0]])


@pytest.mark.parametrize(
    ("scores", "sparsity", "heads", "neurons"),
    [
        (SCORES, 0.0, {}, {}),
        # 0.6 heads are 1, 0.8 neurons too.
        (SCORES, 0.1, {0: [1]}, {0: [1]}),
        # 1.5 heads are 2, to the even one; heads and neurons are ranked separately.
        (SCORES, 0.25, {0: [1], 1: [0]}, {0: [1, 2]}),
        (SCORES, 0.5, {0: [1], 1: [0, 2]}, {0: [1, 2, 3], 1: [0]}),
        (SCORES, 0.75, {0: [1, 2], 1: [0, 2]}, {0: [1, 2, 3], 1: [0, 2, 3]}),
        # Half a unit is rounded to the even number: 2 of 5 * 0.5.
        (scores_of([[1.0] * 5], [[1.0] * 7]), 0.5, {0: [0, 1]}, {0: [0, 1, 2, 3]}),
        # Units that a layer does not have are not counted.
        (scores_of([[0.1, NAN], [0.2, 0.3]], [[1.0, 2.0], [NAN, NAN]]), 0.5, {0: [0], 1: [0]}, {0: [0]}),
    ],
)
def test_lowest_units_of_all_layers_are_removed(scores, sparsity, heads, neurons):
    assert RemovedUnits.lowest(scores, sparsity) == RemovedUnits(heads, neurons)


@pytest.mark.parametrize(
    ("num_lowest", "expected"),
    [
        # All in the first layer: 2.5 times 8, to the even one.
        (20, {0: 16}),
        # All of the first, and 4 of the second, half of 8, which become none; 5 of the second become 8.
        (28, {0: 24}),
        (29, {0: 24, 1: 8}),
    ],
)
def test_numbers_of_neurons_are_rounded_to_multiples(num_lowest, expected):
    scores = UnitScores(SCORES.heads, torch.arange(48.0).view(2, 24))
    removed = RemovedUnits.lowest(scores, num_lowest / 48, round_to=8)
    assert {layer: len(neurons) for layer, neurons in removed.neurons.items()} == expected


@pytest.mark.parametrize(
    # 1 and 2 heads of width 4 are half of 8, to the even one, and 8 columns; those of width 16 stay.
    ("round_to", "width", "expected"),
    [(8, 4, {1: [0, 2]}), (8, 16, {0: [1], 1: [0, 2]}), (None, None, {0: [1], 1: [0, 2]})],
)
def test_columns_of_heads_are_rounded_to_multiples(round_to, width, expected):
    assert RemovedUnits.lowest(SCORES, 0.5, round_to=round_to, head_dim=width).heads == expected


@pytest.mark.parametrize("sparsity", [-0.1, 1.0, NAN, 5])
def test_impossible_sparsities_raise(sparsity):
    with pytest.raises(UsageError, match=f"sparsity.* {sparsity}"):
        RemovedUnits.lowest(SCORES, sparsity)


def test_teachers_without_units_raise():
    with pytest.raises(UsageError, match=r"0\.95 .*\b6 heads"):
        RemovedUnits.lowest(SCORES, 0.95)
    with pytest.raises(UsageError, match=r"0\.95 .*\b8 neurons"):
        RemovedUnits.lowest(UnitScores(torch.rand(9, 9), SCORES.neurons), 0.95)


@pytest.mark.parametrize(
    "name", slow_after(2, ["bert", "albert", "distilbert", "mwp_student", "modernbert", "deberta-v3", "mpnet"])
)
def test_cut_equals_masked_equals_reloaded(name, tmp_path):
    teacher = tiny_encoder(name, "ForSequenceClassification")
    batch = tiny_batch(teacher)
    before = first_output(teacher, batch)
    # The first layer loses all heads, the last all neurons.
    removed = RemovedUnits({0: [0, 1, 2, 3], 1: [2]}, {0: [1, 5], 2: list(range(20))})
    cut = cut_teacher(teacher, removed)
    expected = first_output(mask_teacher(teacher, removed), batch)
    torch.testing.assert_close(first_output(cut, batch), expected, rtol=0, atol=1e-6)
    assert not torch.allclose(before, expected, atol=1e-3)
    # Pruning alone keeps the output biases of sublayers without units.
    pruned = prune(teacher, removed.heads, removed.neurons)
    has_biases = layer_parts(teacher)[0].output.bias is not None
    assert torch.allclose(first_output(pruned, batch), expected, atol=1e-3) != has_biases
    cut.save_pretrained(tmp_path)
    loaded = AutoModelForSequenceClassification.from_pretrained(tmp_path)
    torch.testing.assert_close(first_output(loaded, batch), expected, rtol=0, atol=1e-6)
    assert torch.equal(first_output(teacher, batch), before)
    assert HeadGates.found_on(teacher) is None


def test_sublayer_without_units_adds_nothing():
    teacher = tiny_encoder("bert")
    batch = tiny_batch(teacher)
    cut = cut_teacher(teacher, RemovedUnits({1: [0, 1, 2, 3]}, {1: list(range(20))}))
    layer = teacher.encoder.layer[1]
    with torch.no_grad():
        states = cut(**batch, output_hidden_states=True).hidden_states
        expected = layer.output.LayerNorm(layer.attention.output.LayerNorm(states[1]))
    torch.testing.assert_close(states[2], expected)


@pytest.mark.parametrize("make", [cut_teacher, mask_teacher])
def test_gated_teacher_raises(make):
    teacher = tiny_encoder("bert")
    with HeadGates(teacher), pytest.raises(UsageError, match="gates"):
        make(teacher, RemovedUnits({}, {}))
