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


def objectives(tmp_path, **fields):
    return default_objectives(DistillationConfig(str(tmp_path), **fields))


def test_the_papers_objectives(tmp_path):
    fields = {"temperature": 3.0, "scale_by_square": False, "soft_label_weight": 0.25, "prediction_weight": 2.0}
    soft, hard, hidden, embedding = objectives(
        tmp_path, **fields, layer_mapping="last", hidden_weights=[1, 2], embedding_weight=0.5, use_bottlenecks=False
    )
    assert type(soft) is SoftLabels and (soft.name, soft.weight) == ("soft", 0.5)
    assert (soft.temperature, soft.scale_by_square) == (3.0, False)
    assert type(hard) is HardLabels and (hard.name, hard.weight) == ("hard", 1.5)
    assert type(hidden) is HiddenStates and type(hidden.loss) is HiddenMSELoss and hidden.name == "hidden"
    assert (hidden.layer_mapping, hidden.layer_weights, hidden.use_bottlenecks) == ("last", [1, 2], False)
    assert type(embedding) is EmbeddingOutputs and (embedding.name, embedding.weight) == ("embedding", 0.5)


def test_what_has_no_weight_is_left_out(tmp_path):
    fields = {"soft_label_weight": 0.0, "hidden_loss": "none", "embedding_weight": 0.0}
    assert [type(each) for each in objectives(tmp_path, **fields)] == [HardLabels]
    fields |= {"soft_label_weight": 1.0, "prediction_loss": "dkd"}
    assert [type(each) for each in objectives(tmp_path, **fields)] == [DKD]
    assert objectives(tmp_path, **fields, prediction_weight=0.0) == []


@pytest.mark.parametrize(
    ("name", "kind", "loss"),
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
def test_names_of_hidden_losses(tmp_path, name, kind, loss):
    found = objectives(tmp_path, hidden_loss=name)[2]
    assert type(found) is kind and found.name == "hidden" and (loss is None or type(found.loss) is loss)
    assert name != "attention_mean" or found.loss.heads == "mean"


def test_several_hidden_losses_have_their_own_names(tmp_path):
    found = objectives(tmp_path, hidden_loss="mse+attention", prediction_weight=0.0)
    assert [(type(each), each.name) for each in found] == [
        (HiddenStates, "mse"),
        (AttentionMaps, "attention"),
        (EmbeddingOutputs, "embedding"),
    ]


@pytest.mark.parametrize(
    "fields", [{"hidden_loss": "mse+foo"}, {"hidden_loss": "mse+mse"}, {"hidden_loss": ""}, {"prediction_loss": "ce"}]
)
def test_unknown_names(tmp_path, fields):
    ((name, value),) = fields.items()
    with pytest.raises(ValueError, match=f"`{name}`.*{re.escape(repr(value))}"):
        objectives(tmp_path, **fields)


def test_direction_of_the_divergence(tmp_path):
    soft = objectives(tmp_path, kl_direction="skew", skew_alpha=0.3)[0]
    assert (soft.direction, soft.skew_alpha) == ("skew", 0.3)
    assert objectives(tmp_path)[0].direction == "forward"
    wrong = ({"kl_direction": "back"}, {"kl_direction": "jsd", "prediction_loss": "dkd"}, {"skew_alpha": 1.0})
    for fields in (*wrong, {"skew_alpha": 0.3}, {"skew_alpha": 0.3, "kl_direction": "jsd"}):
        with pytest.raises(ValueError, match=f"`{next(iter(fields))}`"):
            objectives(tmp_path, **fields)


def test_weights_of_layers_need_a_hidden_loss(tmp_path):
    with pytest.raises(ValueError, match="`hidden_weights`.*`hidden_loss`"):
        objectives(tmp_path, hidden_loss="none", hidden_weights=[1.0, 1.0, 1.0])
