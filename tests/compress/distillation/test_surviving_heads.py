"""Objectives on heads when some are pruned, by gates or cut."""

import pytest
import torch

from hf_mwp.compress.distillation.features import Features, read_features
from hf_mwp.compress.distillation.objectives import AttentionMaps, AttentionRelations
from hf_mwp.compress.distillation.objectives.head_objective import surviving_heads
from hf_mwp.compress.losses import AttentionMSELoss, RelationLoss
from hf_mwp.compress.pruning import HeadGates, prune_heads
from tests.compress.pruning.encoders import tiny_batch, tiny_encoder
from tests.compress.trainers.distilling import set_up
from tests.slow_parameters import slow_except
from tests.tiny import tiny_classifier
from tests.tiny_causal import tiny_causal, tiny_causal_batch


def eager_encoder(**fields):
    return tiny_encoder("bert", attn_implementation="eager", **fields)


def attention_features(values):
    """Attention of one text of one token, with one number for each head."""
    attention = torch.tensor(values)[None, :, None, None]
    return Features({"attentions": [attention] * 3, "hidden_states": None})


def maps_loss(student, teacher, student_values, teacher_values, **options):
    """The first layer's part of the loss."""
    objective = AttentionMaps(layer_mapping=[(1, 1)], **options)
    set_up(objective, student, teacher, tiny_batch(student))
    losses = objective.losses(attention_features(student_values), attention_features(teacher_values), {})
    return losses["attention_1"].item()


def test_maps_of_surviving_heads_follow_the_same_heads_of_the_teacher():
    student = eager_encoder()
    teacher = eager_encoder()
    student_values = [1.0, 2.0, 3.0, 4.0]
    teacher_values = [1.0, 1.0, 1.0, 1.0]
    # Squares 0, 1, 4, 9.
    assert maps_loss(student, teacher, student_values, teacher_values) == 14 / 4
    with HeadGates(student) as gates:
        gates.close({0: [3], 1: [0, 1]})
        assert maps_loss(student, teacher, student_values, teacher_values) == pytest.approx(5 / 3)
        # So long as gates are closed, not when they open again.
        gates.open()
        assert maps_loss(student, teacher, student_values, teacher_values) == 14 / 4
        gates.close({0: [0, 1, 2, 3]})
        assert maps_loss(student, teacher, student_values, teacher_values) == 0.0
    cut = prune_heads(student, {0: [1]})
    assert maps_loss(cut, teacher, [1.0, 3.0, 4.0], teacher_values) == pytest.approx(13 / 3)
    # The last generation teaches the next: of its heads 0, 2, 3 the student has lost the last.
    assert maps_loss(prune_heads(cut, {0: [2]}), cut, [1.0, 3.0], [0.0, 5.0, 7.0]) == (1 + 4) / 2
    # A head that only the student has is compared with none.
    assert maps_loss(student, cut, student_values, [1.0, 1.0, 1.0]) == pytest.approx(13 / 3)


def test_different_numbers_of_heads_are_compared_by_their_mean():
    student = eager_encoder()
    teacher = eager_encoder(num_attention_heads=2)
    student_values = [1.0, 2.0, 3.0, 6.0]
    mean = {"loss": AttentionMSELoss(heads="mean")}
    assert maps_loss(student, teacher, student_values, [1.0, 1.0], **mean) == 4.0
    with HeadGates(student) as gates:
        gates.close({0: [3]})
        assert maps_loss(student, teacher, student_values, [1.0, 1.0], **mean) == 1.0
    with pytest.raises(ValueError, match="4 heads.* 2.*attention_mean"):
        maps_loss(student, teacher, student_values, [1.0, 1.0])


def test_heads_keep_their_numbers_when_a_student_has_some_of_the_layers():
    cut = prune_heads(prune_heads(eager_encoder(), {0: [1], 2: [0]}), {2: [0, 2]})
    assert cut.config.cut_heads == [[1], [], [0, 1, 3]]
    assert type(cut).from_encoder(cut, layers=[2, 0]).config.cut_heads == [[0, 1, 3], [1]]


def test_layers_that_share_their_weights_have_the_same_heads():
    layers = surviving_heads(prune_heads(tiny_encoder("albert", num_hidden_groups=1), {0: [1]}))
    assert [list(layer.places) for layer in layers] == [[0, 2, 3]] * 3


def test_relations_leave_pruned_heads_out():
    student = eager_encoder()
    teacher = eager_encoder()
    generator = torch.Generator().manual_seed(0)
    student_vectors, teacher_vectors = torch.randn(2, 2, 5, 24, generator=generator)

    def recorded(vectors):
        return Features({}, {f"value_{layer}": vectors.clone() for layer in (1, 2, 3)})

    def loss(student, student_vectors, teacher_vectors=teacher_vectors):
        objective = AttentionRelations(4, ("value",), layer_mapping=[(1, 1)])
        set_up(objective, student, teacher, tiny_batch(student))
        return objective.losses(recorded(student_vectors), recorded(teacher_vectors), {})["relations_1"]

    torch.testing.assert_close(loss(student, student_vectors), RelationLoss(4)(student_vectors, teacher_vectors))
    # Head 1 is columns 6 to 11; 18 columns make 2 relation heads of the 4.
    columns = [*range(6), *range(12, 24)]
    expected = RelationLoss(2)(student_vectors[..., columns], teacher_vectors[..., columns])
    with HeadGates(student) as gates:
        gates.close({0: [1]})
        torch.testing.assert_close(loss(student, student_vectors), expected)
        changed = student_vectors.clone()
        changed[..., 6:12] = 7.0
        assert loss(student, changed, student_vectors).item() == pytest.approx(0.0, abs=1e-6)
    cut = prune_heads(student, {0: [1]})
    torch.testing.assert_close(loss(cut, student_vectors[..., columns]), expected)
    # Models whose heads cannot be pruned are compared by the default number of heads.
    objective = AttentionRelations()
    set_up(objective, tiny_classifier(), tiny_classifier(1), tiny_batch(tiny_classifier()))
    assert objective.loss.heads == 4


def relations_loss(student, teacher):
    """The loss on the queries, keys and values of the first layer of causal models."""
    batch = tiny_causal_batch()
    objective = AttentionRelations(layer_mapping=[(1, 1)])
    set_up(objective, student, teacher, batch)
    options = {"output_hidden_states": True}
    student_features = read_features(student, batch, options, objective.student_reads)
    teacher_features = read_features(teacher, batch, options, objective.teacher_reads)
    (loss,) = objective.losses(student_features, teacher_features, batch).values()
    return loss.item()


@pytest.mark.parametrize("heads", slow_except([[0, 1], [0, 2]], [0, 2]))
def test_relations_of_shared_keys_follow_the_groups_of_surviving_heads(heads):
    teacher = tiny_causal(seed=1)
    student = tiny_causal()
    with HeadGates(student) as gates:
        gates.close({0: heads})
        gated = relations_loss(student, teacher)
    assert relations_loss(prune_heads(student, {0: heads}), teacher) == pytest.approx(gated, rel=1e-5)
    assert relations_loss(student, teacher) != pytest.approx(gated, rel=1e-2)
