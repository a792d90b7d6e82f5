import math
from dataclasses import replace

import pytest
import torch

from hf_mwp.compress.pruning import KnowledgeableScores, UnitScores
from hf_mwp.utils.usage_error import UsageError
from tests.compress.pruning.encoders import tiny_encoder


def table(rows):
    return torch.tensor(rows, dtype=torch.float64)


NAN = math.nan
EXPRESSIVENESS = UnitScores(table([[3.0, 4.0], [0.0, 2.0]]), table([[1.0, 0.0, 0.0], [2.0, 1.0, 2.0]]))
FRIENDLINESS = UnitScores(table([[0.0, 0.5], [6.0, 8.0]]), table([[0.0, 0.0, 0.0], [0.0, 3.0, 4.0]]))


@pytest.mark.parametrize(
    ("row", "expected"),
    [
        ([3.0, 4.0], [0.6, 0.8]),
        ([0.0, 2.0], [0.0, 1.0]),
        ([2.0, 1.0, 2.0], [2 / 3, 1 / 3, 2 / 3]),
        # 1e-7 is added to the norm: scores as small are halved, and a layer of zeros stays zero.
        ([1e-7, 0.0], [0.5, 0.0]),
        ([0.0, 0.0], [0.0, 0.0]),
        ([3.0, 4.0, NAN], [0.6, 0.8, NAN]),
        ([NAN, NAN], [NAN, NAN]),
    ],
)
def test_layers_are_divided_by_their_norms(row, expected):
    scores = UnitScores(table([row]), table([row])).normalized()
    torch.testing.assert_close(scores.heads, table([expected]), rtol=0, atol=1e-7, equal_nan=True)
    torch.testing.assert_close(scores.neurons, table([expected]), rtol=0, atol=1e-7, equal_nan=True)


@pytest.mark.parametrize(
    ("expressiveness_weight", "heads"),
    [
        (0.0, [[0.0, 1.0], [0.6, 0.8]]),
        (0.25, [[0.15, 0.95], [0.45, 0.85]]),
        (1.0, [[0.6, 0.8], [0.0, 1.0]]),
    ],
)
def test_weight_moves_from_friendliness_to_expressiveness(expressiveness_weight, heads):
    scores = KnowledgeableScores(EXPRESSIVENESS, FRIENDLINESS).combined(expressiveness_weight)
    torch.testing.assert_close(scores.heads, table(heads), rtol=0, atol=1e-6)


def test_combination_by_default_and_without_friendliness():
    scores = KnowledgeableScores(EXPRESSIVENESS, FRIENDLINESS)
    neurons = table([1 / 3, 1 / 6 + 0.3, 1 / 3 + 0.4])
    torch.testing.assert_close(scores.combined().neurons[1], neurons, rtol=0, atol=1e-6)
    # Expressiveness alone needs no trial student.
    alone = KnowledgeableScores(EXPRESSIVENESS)
    assert torch.equal(alone.combined(1).heads, EXPRESSIVENESS.normalized().heads)
    with pytest.raises(UsageError, match=r"0\.5 .*student-friendliness"):
        alone.combined(0.5)
    with pytest.raises(UsageError, match=r" 0 to 1.*-0\.1"):
        scores.combined(-0.1)
    with pytest.raises(UsageError, match=r" 0 to 1.*1\.1"):
        scores.combined(1.1)


def test_scores_are_saved_and_loaded(tmp_path):
    uneven = UnitScores(table([[3.0, NAN]]), EXPRESSIVENESS.neurons)
    KnowledgeableScores(uneven, FRIENDLINESS, {"split": "held out"}).save(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["scores.safetensors"]
    loaded = KnowledgeableScores.load(tmp_path)
    assert torch.equal(loaded.friendliness.heads, FRIENDLINESS.heads) and loaded.about == {"split": "held out"}
    assert torch.equal(loaded.expressiveness.heads.isnan(), uneven.heads.isnan())
    assert torch.equal(loaded.expressiveness.neurons, EXPRESSIVENESS.neurons)
    KnowledgeableScores(uneven).save(tmp_path)
    assert KnowledgeableScores.load(tmp_path).friendliness is None
    (tmp_path / "scores.safetensors").write_bytes(b"damaged")
    for folder in (tmp_path, tmp_path / "nowhere"):
        with pytest.raises(UsageError, match="scores.safetensors"):
            KnowledgeableScores.load(folder)


def test_both_scores_of_shared_heads_are_saved(tmp_path):
    groups = torch.zeros_like(EXPRESSIVENESS.heads, dtype=torch.long)
    scores = [replace(table_of_units, groups=groups) for table_of_units in (EXPRESSIVENESS, FRIENDLINESS)]
    KnowledgeableScores(*scores).save(tmp_path)
    loaded = KnowledgeableScores.load(tmp_path)
    assert torch.equal(loaded.expressiveness.groups, groups)
    assert torch.equal(loaded.friendliness.groups, groups)


def test_random_scores_depend_only_on_their_seed():
    model = tiny_encoder("bert")
    state = torch.random.get_rng_state()
    scores = UnitScores.random(model, 3)
    repeated = UnitScores.random(model, 3)
    scores.check_fits(model)
    assert scores.heads.shape == (3, 4) and scores.neurons.shape == (3, 20)
    assert torch.equal(scores.heads, repeated.heads) and torch.equal(scores.neurons, repeated.neurons)
    assert not torch.equal(scores.heads, UnitScores.random(model, 4).heads)
    assert torch.equal(state, torch.random.get_rng_state())
