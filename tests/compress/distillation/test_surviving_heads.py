"""Objectives on heads when some are pruned, by gates or cut."""

import pytest
import torch

from hf_mwp.compress.distillation.features import Features
from hf_mwp.compress.distillation.objectives import AttentionMaps, AttentionRelations
from hf_mwp.compress.distillation.objectives.head_objective import surviving_heads
from hf_mwp.compress.losses import AttentionMSELoss, RelationLoss
from hf_mwp.compress.pruning import HeadGates, prune_heads
from tests.compress.pruning.encoders import tiny_batch, tiny_encoder
from tests.tiny import tiny_classifier


def eager(**fields):
    return tiny_encoder("bert", attn_implementation="eager", **fields)


def planned(objective, student, teacher):
    batch = tiny_batch(student)
    with torch.no_grad():
        features = [Features(model(**batch, **objective.options), model=model) for model in (student, teacher)]
        objective.setup(*features, batch)
    return objective


def maps_loss(student, teacher, ours, theirs, **options):
    """The first layer's part, for one text of one token and one number a head."""
    objective = planned(AttentionMaps(layer_mapping=[(1, 1)], **options), student, teacher)
    features = [
        Features({"attentions": [torch.tensor(heads)[None, :, None, None]] * 3, "hidden_states": None})
        for heads in (ours, theirs)
    ]
    return objective.losses(*features, {})["attention_1"].item()


def test_maps_of_surviving_heads_follow_their_own_counterparts():
    student = eager()
    teacher = eager()
    ours = [1.0, 2.0, 3.0, 4.0]
    theirs = [1.0, 1.0, 1.0, 1.0]
    # Squares 0, 1, 4, 9.
    assert maps_loss(student, teacher, ours, theirs) == 14 / 4
    with HeadGates(student) as gates:
        gates.close({0: [3], 1: [0, 1]})
        assert maps_loss(student, teacher, ours, theirs) == pytest.approx(5 / 3)
        # So long as gates are closed, not when they open again.
        gates.open()
        assert maps_loss(student, teacher, ours, theirs) == 14 / 4
    cut = prune_heads(student, {0: [1]})
    assert maps_loss(cut, teacher, [1.0, 3.0, 4.0], theirs) == pytest.approx(13 / 3)
    # The last generation teaches the next: of its heads 0, 2, 3 the student has lost the last.
    assert maps_loss(prune_heads(cut, {0: [2]}), cut, [1.0, 3.0], [0.0, 5.0, 7.0]) == (1 + 4) / 2
    # A head that only the student has is compared with none.
    assert maps_loss(student, cut, ours, [1.0, 1.0, 1.0]) == pytest.approx(13 / 3)


def test_a_layer_without_heads_has_nothing_to_follow():
    student = eager()
    teacher = eager()
    with HeadGates(student) as gates:
        gates.close({0: [0, 1, 2, 3]})
        assert maps_loss(student, teacher, [1.0, 2.0, 3.0, 4.0], [0.0] * 4) == 0.0


def test_heads_of_other_numbers_are_nobodys_counterparts():
    student = eager()
    teacher = eager(num_attention_heads=2)
    means = {"loss": AttentionMSELoss(heads="mean")}
    assert maps_loss(student, teacher, [1.0, 2.0, 3.0, 6.0], [1.0, 1.0], **means) == 4.0
    with HeadGates(student) as gates:
        gates.close({0: [3]})
        assert maps_loss(student, teacher, [1.0, 2.0, 3.0, 6.0], [1.0, 1.0], **means) == 1.0
    with pytest.raises(ValueError, match="4 heads.* 2.*attention_mean"):
        maps_loss(student, teacher, [1.0] * 4, [1.0] * 2)


def test_layers_and_heads_keep_their_numbers_when_a_student_takes_some_layers():
    cut = prune_heads(prune_heads(eager(), {0: [1], 2: [0]}), {2: [0, 2]})
    assert cut.config.cut_heads == [[1], [], [0, 1, 3]]
    assert type(cut).from_encoder(cut, layers=[2, 0]).config.cut_heads == [[0, 1, 3], [1]]


def test_layers_that_share_their_weights_have_the_same_heads():
    layers = surviving_heads(prune_heads(tiny_encoder("albert", num_hidden_groups=1), {0: [1]}))
    assert [[*each.places] for each in layers] == [[0, 2, 3]] * 3


def test_relations_leave_pruned_heads_out():
    student = eager()
    teacher = eager()
    generator = torch.Generator().manual_seed(0)
    ours, theirs = torch.randn(2, 2, 5, 24, generator=generator)

    def loss(student, ours, teacher_vectors=theirs):
        objective = planned(AttentionRelations(4, ("value",), layer_mapping=[(1, 1)]), student, teacher)
        recorded = [
            {f"value_{layer}": each.clone().requires_grad_() for layer in (1, 2, 3)}
            for each in (ours, teacher_vectors)
        ]
        return objective.losses(*(Features({}, each) for each in recorded), {})["relations_1"]

    torch.testing.assert_close(loss(student, ours), RelationLoss(4)(ours, theirs))
    # Head 1 is columns 6 to 11; 18 columns make 2 relation heads of the 4.
    left = [*range(6), *range(12, 24)]
    expected = RelationLoss(2)(ours[..., left], theirs[..., left])
    with HeadGates(student) as gates:
        gates.close({0: [1]})
        torch.testing.assert_close(loss(student, ours), expected)
        elsewhere = ours.clone()
        elsewhere[..., 6:12] = 7.0
        assert loss(student, elsewhere, ours).item() == pytest.approx(0.0, abs=1e-6)
    torch.testing.assert_close(loss(prune_heads(student, {0: [1]}), ours[..., left]), expected)
    # What cannot be pruned is compared as it was.
    assert planned(AttentionRelations(), tiny_classifier(), tiny_classifier(1)).loss.heads == 4
