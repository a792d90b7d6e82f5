import pytest
import torch
from torch.nn.functional import cross_entropy

from hf_mwp.compress.models.architecture import layer_parts
from hf_mwp.compress.pruning import (
    KnowledgeableScores,
    UnitScores,
    measure_weight_scores,
    prune_heads,
    zero_random_weights,
    zero_weights,
)
from hf_mwp.utils.usage_error import UsageError
from tests.compress.pruning.encoders import tiny_batch, tiny_encoder


def batches(model):
    found = [tiny_batch(model, rows=3), tiny_batch(model, rows=2, length=6)]
    return [each | {"labels": torch.arange(len(each["input_ids"])) % 3} for each in found]


def test_scores_are_weights_times_gradients():
    teacher = tiny_encoder("bert", "ForSequenceClassification").double()
    student = tiny_encoder("bert", "ForSequenceClassification", num_hidden_layers=1).double()
    given = batches(teacher)
    found = measure_weight_scores(teacher.requires_grad_(False), given, student)
    assert all(each.grad is None and not each.requires_grad for each in teacher.parameters())
    assert found.expressiveness.heads.shape == (3, 4 * 24 * 24) and found.friendliness.neurons.shape == (
        3,
        2 * 24 * 20,
    )
    parts = layer_parts(teacher.requires_grad_())[1]
    for scores, loss in (
        (found.expressiveness, lambda batch: teacher(**batch).loss),
        (found.friendliness, lambda batch: 2 * cross_entropy(student(**batch).logits / 2, soft(teacher, batch))),
    ):
        expected = 0
        for batch in given:
            linears = (parts.query, parts.key, parts.value, parts.attention_output, parts.intermediate, parts.output)
            weights = [each.weight for each in linears]
            gradients = torch.autograd.grad(loss(batch), weights)
            products = zip(weights, gradients, strict=True)
            expected = expected + torch.cat([(weight * each).abs().flatten().float() for weight, each in products])
        torch.testing.assert_close(torch.cat([scores.heads[1], scores.neurons[1]]), expected, rtol=1e-5, atol=1e-9)


def soft(teacher, batch):
    return (teacher(**batch).logits / 2).softmax(-1)


def test_the_lowest_weights_are_zero(tmp_path):
    teacher = prune_heads(tiny_encoder("bert", "ForSequenceClassification"), {0: [0], 2: [0, 1, 2, 3]})
    scores = measure_weight_scores(teacher, batches(teacher))
    scores.save(tmp_path)
    scores = KnowledgeableScores.load(tmp_path).combined(1.0)
    sparse = zero_weights(teacher, scores, 0.5)
    for number, array in enumerate((scores.heads, scores.neurons)):
        ranked = array[array.isfinite()].sort().values
        middle = ranked[len(ranked) // 2]
        zeros = 0
        for row, parts in zip(array, layer_parts(sparse), strict=True):
            kinds = (parts.query, parts.key, parts.value, parts.attention_output), (parts.intermediate, parts.output)
            weights = [each.weight.flatten() for each in kinds[number] if each is not None]
            weights = torch.cat(weights) if weights else torch.zeros(0)
            zeros += int(weights.eq(0).sum())
            assert torch.equal(weights.eq(0), row[: len(weights)] < middle)
        assert zeros == len(ranked) // 2
    assert all(parameter.ne(0).any() for parameter in teacher.parameters())


def test_what_cannot_be_done():
    teacher = tiny_encoder("bert", "ForSequenceClassification")
    with pytest.raises(UsageError, match="split"):
        measure_weight_scores(teacher, [])
    with pytest.raises(UsageError, match="attention weights"):
        zero_weights(teacher, UnitScores.random(teacher), 0.5)
    with pytest.raises(UsageError, match=r"sparsity.* 1\.0"):
        zero_weights(teacher, UnitScores.random(teacher), 1.0)
    scores = measure_weight_scores(teacher, batches(teacher)).combined(1.0)
    with pytest.raises(UsageError, match=r"0\.99999 "):
        zero_weights(teacher, scores, 0.99999)


def test_random_weights_are_zero():
    teacher = tiny_encoder("bert", "ForSequenceClassification")
    before = {name: weight.clone() for name, weight in teacher.state_dict().items()}
    one, again, other = (zero_random_weights(teacher, 0.25, seed).state_dict() for seed in (1, 1, 2))
    changed = {name for name, weight in one.items() if not torch.equal(weight, before[name])}
    # Query, key, value, output and two feed-forward matrices of three layers; a quarter of each.
    assert len(changed) == 18 and all(name.endswith("weight") and ".layer." in name for name in changed)
    for name in changed:
        assert int(one[name].eq(0).sum()) == round(0.25 * one[name].numel())
        assert torch.equal(one[name][one[name] != 0], before[name][one[name] != 0])
    assert all(torch.equal(one[name], again[name]) for name in one)
    assert any(not torch.equal(one[name], other[name]) for name in changed)
    assert all(torch.equal(weight, before[name]) for name, weight in teacher.state_dict().items())
    with pytest.raises(UsageError):
        zero_random_weights(teacher, 1.0)
