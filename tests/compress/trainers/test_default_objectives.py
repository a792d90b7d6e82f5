import re

import pytest

from hf_mwp.compress.distillation.objectives import (
    DKD,
    FSP,
    PKD,
    AttentionMaps,
    AttentionRelations,
    ContextRelations,
    EmbeddingOutputs,
    HardLabels,
    HiddenStates,
    SoftLabels,
)
from hf_mwp.compress.losses import (
    AttentionMSELoss,
    CKALoss,
    CosineLoss,
    GramLoss,
    HiddenMSELoss,
    NSTLoss,
    ProcrustesLoss,
)
from hf_mwp.compress.trainers import DistillationConfig
from hf_mwp.compress.trainers.distillation_config import default_objectives


@pytest.fixture
def objectives_of(tmp_path):
    def make(**fields):
        return default_objectives(DistillationConfig(str(tmp_path), **fields))

    return make


def test_fields_of_the_config_reach_the_objectives(objectives_of):
    fields = {"temperature": 3.0, "scale_by_square": False, "soft_label_weight": 0.25, "prediction_weight": 2.0}
    fields |= {"layer_mapping": "last", "hidden_weights": [1, 2], "embedding_weight": 0.5, "use_bottlenecks": False}
    soft, hard, hidden, embedding = objectives_of(**fields)
    assert type(soft) is SoftLabels
    assert (soft.name, soft.weight, soft.temperature, soft.scale_by_square) == ("soft", 0.5, 3.0, False)
    assert type(hard) is HardLabels
    assert (hard.name, hard.weight) == ("hard", 1.5)
    assert type(hidden) is HiddenStates
    assert type(hidden.loss) is HiddenMSELoss
    assert (hidden.name, hidden.layer_mapping, hidden.layer_weights) == ("hidden", "last", [1, 2])
    assert not hidden.use_bottlenecks
    assert type(embedding) is EmbeddingOutputs
    assert (embedding.name, embedding.weight) == ("embedding", 0.5)


@pytest.mark.parametrize(
    ("fields", "classes"),
    [
        ({"soft_label_weight": 0.0}, [HardLabels]),
        ({"soft_label_weight": 1.0, "prediction_loss": "dkd"}, [DKD]),
        ({"prediction_weight": 0.0}, []),
    ],
)
def test_losses_with_weight_0_are_left_out(objectives_of, fields, classes):
    objectives = objectives_of(**fields, hidden_loss="none", embedding_weight=0.0)
    assert [type(objective) for objective in objectives] == classes


@pytest.mark.parametrize(
    ("name", "objective_class", "loss_class"),
    [
        ("attention", AttentionMaps, AttentionMSELoss),
        ("attention_mean", AttentionMaps, AttentionMSELoss),
        ("fsp", FSP, None),
        ("nst", HiddenStates, NSTLoss),
        ("cka", HiddenStates, CKALoss),
        ("cosine", HiddenStates, CosineLoss),
        ("procrustes", HiddenStates, ProcrustesLoss),
        ("gram", HiddenStates, GramLoss),
        ("pkd", PKD, None),
        ("ckd", ContextRelations, None),
        ("minilm", AttentionRelations, None),
    ],
)
def test_each_hidden_loss_has_its_objective(objectives_of, name, objective_class, loss_class):
    objective = objectives_of(hidden_loss=name)[2]
    assert type(objective) is objective_class
    assert objective.name == "hidden"
    assert loss_class is None or type(objective.loss) is loss_class
    assert name != "attention_mean" or objective.loss.heads == "mean"


def test_several_hidden_losses_have_their_own_names(objectives_of):
    states, attention, _ = objectives_of(hidden_loss="mse+attention", prediction_weight=0.0)
    assert (type(states), states.name) == (HiddenStates, "mse")
    assert (type(attention), attention.name) == (AttentionMaps, "attention")


@pytest.mark.parametrize(
    ("name", "value"),
    [("hidden_loss", "mse+foo"), ("hidden_loss", "mse+mse"), ("hidden_loss", ""), ("prediction_loss", "ce")],
)
def test_unknown_losses_are_named(objectives_of, name, value):
    with pytest.raises(ValueError, match=f"`{name}`.*{re.escape(repr(value))}"):
        objectives_of(**{name: value})


def test_the_direction_of_the_divergence_reaches_the_objective(objectives_of):
    soft = objectives_of(kl_direction="skew", skew_alpha=0.3)[0]
    assert (soft.direction, soft.skew_alpha) == ("skew", 0.3)
    assert objectives_of()[0].direction == "forward"


@pytest.mark.parametrize(
    ("name", "fields"),
    [
        ("kl_direction", {"kl_direction": "back"}),
        ("kl_direction", {"kl_direction": "jsd", "prediction_loss": "dkd"}),
        ("skew_alpha", {"skew_alpha": 1.0}),
        ("skew_alpha", {"skew_alpha": 0.3}),
        ("skew_alpha", {"skew_alpha": 0.3, "kl_direction": "jsd"}),
        ("hidden_weights", {"hidden_loss": "none", "hidden_weights": [1.0, 1.0, 1.0]}),
    ],
)
def test_fields_without_effect_are_named(objectives_of, name, fields):
    with pytest.raises(ValueError, match=f"`{name}`"):
        objectives_of(**fields)
