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
from tests.compress.pruning.encoders import labelled_batches, tiny_encoder


def classifier(**fields):
    return tiny_encoder("bert", "ForSequenceClassification", **fields)


def weights_of(layer):
    """The weights of the matrices of attention, and of those of the feed-forward network, in one vector each."""
    vectors = []
    for linears in (
        (layer.query, layer.key, layer.value, layer.attention_output),
        (layer.intermediate, layer.output),
    ):
        flat = [linear.weight.flatten() for linear in linears if linear is not None]
        vectors.append(torch.cat([torch.zeros(0), *flat]))
    return vectors


def test_scores_are_weights_times_gradients():
    teacher = classifier().double()
    student = classifier(num_hidden_layers=1).double()
    batches = labelled_batches(teacher)
    scores = measure_weight_scores(teacher.requires_grad_(False), batches, student)
    for parameter in teacher.parameters():
        assert parameter.grad is None and not parameter.requires_grad
    assert scores.expressiveness.heads.shape == (3, 4 * 24 * 24)
    assert scores.friendliness.neurons.shape == (3, 2 * 24 * 20)

    def task_loss(batch):
        return teacher(**batch).loss

    def distillation_loss(batch):
        return 2 * cross_entropy(student(**batch).logits / 2, (teacher(**batch).logits / 2).softmax(-1))

    layer = layer_parts(teacher.requires_grad_())[1]
    linears = (layer.query, layer.key, layer.value, layer.attention_output, layer.intermediate, layer.output)
    weights = [linear.weight for linear in linears]
    for table, loss_of in ((scores.expressiveness, task_loss), (scores.friendliness, distillation_loss)):
        expected = 0
        for batch in batches:
            gradients = torch.autograd.grad(loss_of(batch), weights)
            products = torch._foreach_mul(weights, gradients)
            expected = expected + torch.cat([product.abs().flatten().float() for product in products])
        torch.testing.assert_close(torch.cat([table.heads[1], table.neurons[1]]), expected, rtol=1e-5, atol=1e-9)


def test_weights_with_the_lowest_scores_become_zero(tmp_path):
    teacher = prune_heads(classifier(), {0: [0], 2: [0, 1, 2, 3]})
    measure_weight_scores(teacher, labelled_batches(teacher)).save(tmp_path)
    scores = KnowledgeableScores.load(tmp_path).combined(1.0)
    sparse = zero_weights(teacher, scores, 0.5)
    for number, table in enumerate((scores.heads, scores.neurons)):
        ranked = table[table.isfinite()].sort().values
        median = ranked[len(ranked) // 2]
        num_zeros = 0
        for row, layer in zip(table, layer_parts(sparse), strict=True):
            is_zero = weights_of(layer)[number].eq(0)
            num_zeros += int(is_zero.sum())
            assert torch.equal(is_zero, row[: len(is_zero)] < median)
        assert num_zeros == len(ranked) // 2
    for parameter in teacher.parameters():
        assert parameter.ne(0).any()


def test_missing_batches_other_scores_and_impossible_sparsities_raise():
    teacher = classifier()
    with pytest.raises(UsageError, match="split"):
        measure_weight_scores(teacher, [])
    with pytest.raises(UsageError, match="attention weights"):
        zero_weights(teacher, UnitScores.random(teacher), 0.5)
    with pytest.raises(UsageError, match=r"sparsity.* 1\.0"):
        zero_weights(teacher, UnitScores.random(teacher), 1.0)
    scores = measure_weight_scores(teacher, labelled_batches(teacher)).combined(1.0)
    with pytest.raises(UsageError, match=r"0\.99999 "):
        zero_weights(teacher, scores, 0.99999)
    with pytest.raises(UsageError):
        zero_random_weights(teacher, 1.0)


def test_random_weights_become_zero():
    teacher = classifier()
    before = {name: weight.clone() for name, weight in teacher.state_dict().items()}
    sparse = zero_random_weights(teacher, 0.25, 1).state_dict()
    torch.testing.assert_close(teacher.state_dict(), before, rtol=0, atol=0)
    changed = [name for name, weight in sparse.items() if not torch.equal(weight, before[name])]
    # Query, key, value, output and two feed-forward matrices of three layers; a quarter of each.
    assert len(changed) == 18
    for name in changed:
        assert name.endswith("weight") and ".layer." in name
        is_zero = sparse[name].eq(0)
        assert int(is_zero.sum()) == round(0.25 * is_zero.numel())
        assert torch.equal(sparse[name][~is_zero], before[name][~is_zero])
    torch.testing.assert_close(zero_random_weights(teacher, 0.25, 1).state_dict(), sparse, rtol=0, atol=0)
    query = changed[0]
    assert not torch.equal(zero_random_weights(teacher, 0.25, 2).state_dict()[query], sparse[query])
