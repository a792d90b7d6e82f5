import math

import pytest
import torch

from hf_mwp.compress.pruning import KnowledgeableScores, UnitScores
from hf_mwp.utils.job import Job
from hf_mwp.utils.usage_error import UsageError
from tests.compress.pruning.encoders import tiny_encoder


def table(rows):
    return torch.tensor(rows, dtype=torch.float64)


P = UnitScores(table([[3.0, 4.0], [0.0, 2.0]]), table([[1.0, 0.0, 0.0], [2.0, 1.0, 2.0]]))
Q = UnitScores(table([[0.0, 0.5], [6.0, 8.0]]), table([[0.0, 0.0, 0.0], [0.0, 3.0, 4.0]]))


def test_layers_have_norm_one():
    found = P.normalized()
    torch.testing.assert_close(found.heads, table([[0.6, 0.8], [0.0, 1.0]]), rtol=0, atol=1e-7)
    torch.testing.assert_close(found.neurons, table([[1, 0, 0], [2 / 3, 1 / 3, 2 / 3]]), rtol=0, atol=1e-7)
    # 1e-7 is added to the norm: of scores as small, a half is left, and a layer of zeros stays one.
    small = UnitScores(table([[1e-7, 0.0]]), table([[0.0, 0.0]])).normalized()
    torch.testing.assert_close(small.heads, table([[0.5, 0.0]]), rtol=1e-12, atol=0)
    assert not small.neurons.any()
    uneven = UnitScores(table([[3.0, 4.0, math.nan], [math.nan] * 3]), P.neurons).normalized().heads
    torch.testing.assert_close(uneven[0, :2], table([0.6, 0.8]), rtol=0, atol=1e-7)
    assert uneven.isnan().tolist() == [[False, False, True], [True] * 3]


def test_lambda_goes_from_friendliness_to_expressiveness():
    scores = KnowledgeableScores(P, Q)
    for expressiveness_weight, heads in (
        (0.0, [[0.0, 1.0], [0.6, 0.8]]),
        (0.25, [[0.15, 0.95], [0.45, 0.85]]),
        (1.0, [[0.6, 0.8], [0.0, 1.0]]),
    ):
        torch.testing.assert_close(scores.combined(expressiveness_weight).heads, table(heads), rtol=0, atol=1e-6)
    torch.testing.assert_close(
        scores.combined().neurons[1], table([1 / 3, 1 / 6 + 0.3, 1 / 3 + 0.4]), rtol=0, atol=1e-6
    )
    # A student is pruned by expressiveness alone, for which no trial student is needed.
    assert torch.equal(KnowledgeableScores(P).combined(1).heads, P.normalized().heads)
    for expressiveness_weight in (-0.1, 1.1):
        with pytest.raises(UsageError, match=rf" 0 to 1.*{expressiveness_weight}"):
            scores.combined(expressiveness_weight)
    with pytest.raises(UsageError, match=r"0\.5 .*student-friendliness"):
        KnowledgeableScores(P).combined(0.5)


def test_they_are_kept_apart_in_the_folder_of_a_job(tmp_path):
    job = Job.named(tmp_path, "scores", {"seed": 1})
    uneven = UnitScores(table([[3.0, math.nan]]), P.neurons)
    assert job.run(lambda: KnowledgeableScores(uneven, Q, {"split": "held out"}).save(job.path))
    names = {path.name for path in job.path.iterdir() if not path.name.startswith("stage.")}
    assert names == {"scores.safetensors"}
    found = KnowledgeableScores.load(job.path)
    assert torch.equal(found.friendliness.heads, Q.heads) and found.about == {"split": "held out"}
    assert torch.equal(found.expressiveness.heads.isnan(), uneven.heads.isnan())
    assert torch.equal(found.expressiveness.neurons, P.neurons)
    KnowledgeableScores(uneven).save(tmp_path)
    assert KnowledgeableScores.load(tmp_path).friendliness is None
    (job.path / "scores.safetensors").write_bytes(b"damaged")
    for place in (job.path, tmp_path / "nowhere"):
        with pytest.raises(UsageError, match="scores.safetensors"):
            KnowledgeableScores.load(place)


def test_scores_by_chance_are_those_of_their_seed():
    model = tiny_encoder("bert")
    state = torch.random.get_rng_state()
    first = UnitScores.random(model, 3)
    again = UnitScores.random(model, 3)
    other = UnitScores.random(model, 4)
    first.check_fits(model)
    assert torch.equal(first.heads, again.heads) and torch.equal(first.neurons, again.neurons)
    assert not torch.equal(first.heads, other.heads) and torch.equal(state, torch.random.get_rng_state())
    assert first.heads.shape == (3, 4) and first.neurons.shape == (3, 20)
