import math

import pytest
import torch
from transformers import BartConfig, BartForSequenceClassification

from hf_mwp.compress.models.architecture import layer_parts
from hf_mwp.compress.pruning import (
    AttentionEntropy,
    AttentionPeak,
    CombinedImportance,
    GateGradient,
    HeadGates,
    RandomImportance,
    WeightNorm,
    choose_heads,
    prune_heads,
)
from hf_mwp.compress.pruning.head_importance import min_max
from tests.compress.pruning.encoders import (
    CLASSES,
    FOREIGN,
    head_batch,
    labelled_batches,
    rows_of,
    tiny_batch,
    tiny_encoder,
)
from tests.slow_parameters import slow_except


NAN = math.nan


def test_weight_norm_by_hand():
    model = tiny_encoder("bert")
    # All weights of head h of four, six rows each, are h times 1, 2 or 3, up to the sign.
    head_of_row = torch.arange(4.0).repeat_interleave(6)[:, None].expand(24, 24)
    signs = 1 - 2 * torch.eye(24)
    for layer in layer_parts(model):
        layer.query.weight.data = head_of_row * signs
        layer.key.weight.data = 2 * head_of_row * signs
        layer.value.weight.data = 3 * head_of_row * signs
    assert WeightNorm().scores(model).tolist() == [[0.0, 6.0, 12.0, 18.0]] * 3


def test_weight_norm_of_a_fused_projection_by_hand():
    model = tiny_encoder("modernbert")
    # Queries, keys and values, each of four heads of six rows.
    projection_of_row = torch.arange(3.0).repeat_interleave(24)
    head_of_row = torch.arange(4.0).repeat_interleave(6).repeat(3)
    for layer in layer_parts(model):
        layer.query_key_value.weight.data = (projection_of_row + head_of_row)[:, None].repeat(1, 24)
    assert WeightNorm().scores(model).tolist() == [[3.0, 6.0, 9.0, 12.0]] * 3


def test_weight_norm_of_a_layer_without_heads_is_empty():
    model = prune_heads(tiny_encoder("modernbert"), {1: [0, 1, 2, 3]})
    assert WeightNorm().scores(model).isfinite().sum(1).tolist() == [4, 0, 4]


def entropies_and_peaks(model, batch):
    """The mean entropy and peak of each head `(layers, heads)` over valid queries, from attention matrices."""
    model.set_attn_implementation("eager")
    with torch.no_grad():
        maps = torch.stack(model(**batch, output_attentions=True).attentions).double()
    mask = batch["attention_mask"]
    entropies = -torch.special.xlogy(maps, maps).sum(-1) * mask[:, None]
    peaks = maps.amax(-1) * mask[:, None]
    return entropies.sum((1, 3)) / mask.sum(), peaks.sum((1, 3)) / mask.sum()


@pytest.mark.parametrize("name", slow_except([*CLASSES, *FOREIGN], "bert", "mwp_student", "modernbert"))
def test_scores_equal_those_of_attention_matrices(name):
    model = tiny_encoder(name)
    implementation = model.config._attn_implementation
    batch = tiny_batch(model)
    scores = AttentionEntropy().scores(model, [batch])
    peak_scores = AttentionPeak().scores(model, [batch])
    assert model.config._attn_implementation == implementation
    entropies, peaks = entropies_and_peaks(model, batch)
    torch.testing.assert_close(scores, entropies, rtol=1e-5, atol=1e-6)
    torch.testing.assert_close(peak_scores, peaks, rtol=1e-5, atol=1e-6)


def test_entropy_of_a_double_model_is_computed_in_double():
    model = tiny_encoder("roberta").double()
    batch = tiny_batch(model)
    scores = AttentionEntropy().scores(model, [batch])
    torch.testing.assert_close(scores, entropies_and_peaks(model, batch)[0], rtol=0, atol=1e-12)


def test_layers_that_share_their_weights_have_one_row():
    model = tiny_encoder("albert", num_hidden_groups=1)
    batch = tiny_batch(model)
    scores = AttentionEntropy().scores(model, [batch])
    expected = entropies_and_peaks(model, batch)[0].mean(0, keepdim=True)
    torch.testing.assert_close(scores, expected, rtol=1e-5, atol=1e-6)
    assert WeightNorm().scores(model).shape == (1, 4)


@pytest.mark.parametrize("name", slow_except(["bert", *FOREIGN], "bert", "deberta-v3"))
def test_gate_gradient_is_the_slope_of_the_loss(name):
    model = tiny_encoder(name, "ForSequenceClassification")
    batch = labelled_batches(model)[0]
    scores = GateGradient().scores(model, [batch])
    assert all(parameter.grad is None for parameter in model.parameters())
    with HeadGates(model) as gates, torch.no_grad():
        for layer, head in ((0, 1), (2, 3)):
            losses = []
            for factor in (0.9, 1.1):
                gates.open()
                gates.values[layer][head] = factor
                losses.append(model(**batch).loss.item())
            slope = abs(losses[1] - losses[0]) / 0.2
            assert scores[layer, head].item() == pytest.approx(slope, rel=0.02, abs=1e-5)


@pytest.mark.parametrize("importance", [AttentionEntropy(), AttentionPeak()], ids=repr)
def test_scores_do_not_depend_on_the_batches_of_texts(importance):
    model = tiny_encoder("roberta")
    batch = tiny_batch(model)
    torch.testing.assert_close(importance.scores(model, [batch]), importance.scores(model, rows_of([batch])))


@pytest.mark.parametrize("importance", [AttentionEntropy(), AttentionPeak()], ids=repr)
def test_scores_of_choices_are_those_of_their_texts(importance):
    model = tiny_encoder("bert", "ForMultipleChoice")
    batch = tiny_batch(model)
    choices = head_batch(model, "ForMultipleChoice")
    torch.testing.assert_close(importance.scores(model, [choices]), importance.scores(model.bert, [batch]))


def test_min_max_by_hand():
    for values, expected in (
        ([1.0, 3.0, 5.0], [0.0, 0.5, 1.0]),
        ([7.0, 7.0, 7.0], [0.0, 0.0, 0.0]),
        ([2.0, NAN, 4.0], [0.0, -1.0, 1.0]),
    ):
        assert min_max(torch.tensor(values)).nan_to_num(-1.0).tolist() == expected


def test_alpha_moves_from_entropy_to_norm():
    model = tiny_encoder("bert")
    batches = [tiny_batch(model)]
    norm = min_max(WeightNorm().scores(model))
    entropy = min_max(AttentionEntropy().scores(model, batches))
    for alpha in (0.0, 0.3, 1.0):
        scores = CombinedImportance(alpha).scores(model, batches)
        torch.testing.assert_close(scores, alpha * norm + (1 - alpha) * entropy)
    # The norm alone needs no examples.
    assert CombinedImportance(1.0).scores(model).shape == (3, 4)


def test_scoring_an_uneven_model_changes_nothing():
    model = prune_heads(tiny_encoder("distilbert", "ForSequenceClassification"), {0: [0], 2: [0, 1, 2, 3]}).train()
    model.base_model.embeddings.eval()
    batches = labelled_batches(model)
    state = torch.random.get_rng_state()
    for importance in (RandomImportance(3), WeightNorm(), AttentionEntropy(), GateGradient(), CombinedImportance()):
        scores = importance.scores(model, batches)
        assert scores.isfinite().sum(1).tolist() == [3, 4, 0]
        assert torch.equal(scores.nan_to_num(), importance.scores(model, batches).nan_to_num())
    assert model.training and not model.base_model.embeddings.training
    assert torch.equal(state, torch.random.get_rng_state())
    assert model.config._attn_implementation == "sdpa"


def test_missing_batches_labels_and_broken_weights_raise():
    model = tiny_encoder("bert")
    with pytest.raises(ValueError, match="AttentionEntropy.*batches"):
        AttentionEntropy().scores(model)
    with pytest.raises(ValueError, match="GateGradient.*labels"):
        GateGradient().scores(model, [tiny_batch(model)])
    with pytest.raises(ValueError, match=r"`alpha`.* 0 to 1.* 1\.5"):
        CombinedImportance(1.5)
    layer_parts(model)[1].key.weight.data[3] = torch.nan
    with pytest.raises(ValueError, match="WeightNorm.*heads of layer 1"):
        WeightNorm().scores(model)


# Ten heads.
SCORES = torch.tensor([[0.1, 0.2, 0.9, 0.8], [0.3, 0.7, NAN, NAN], [0.15, 0.6, 0.5, 0.4]])


@pytest.mark.parametrize(
    ("ratio", "closed", "expected"),
    [
        (0.0, {}, {}),
        # 30 % are three; 39 % are three as well.
        (0.3, {}, {0: [0, 1], 2: [0]}),
        (0.39, {}, {0: [0, 1], 2: [0]}),
        (0.5, {}, {0: [0, 1], 1: [0], 2: [0, 3]}),
        # The second layer keeps its only other head.
        (0.7, {}, {0: [0, 1, 3], 1: [0], 2: [0, 2, 3]}),
        # Closed heads stay closed, whatever their scores are now.
        (0.3, {0: [2]}, {0: [0, 2], 2: [0]}),
    ],
)
def test_heads_with_the_lowest_scores_are_chosen(ratio, closed, expected):
    assert choose_heads(SCORES, ratio, gone=closed) == expected


def test_lower_layer_comes_first_among_equal_scores():
    assert choose_heads(torch.zeros(2, 3), 0.5) == {0: [0, 1], 1: [0]}


@pytest.mark.parametrize(("ratio", "message"), [(1.0, "ratio.* 1"), (0.8, r"\b8 heads.*\b7\b.*\b1 ")])
def test_impossible_ratios_raise(ratio, message):
    with pytest.raises(ValueError, match=message):
        choose_heads(SCORES, ratio)


def test_entropy_of_a_classifier_with_a_decoder():
    sizes = {"d_model": 24, "encoder_layers": 1, "decoder_layers": 1, "vocab_size": 40, "num_labels": 3}
    sizes |= {"encoder_attention_heads": 4, "decoder_attention_heads": 4, "max_position_embeddings": 32}
    model = BartForSequenceClassification(BartConfig(**sizes, pad_token_id=0, eos_token_id=3)).eval()
    batch = {"input_ids": torch.tensor([[5, 6, 3], [6, 7, 3]]), "attention_mask": torch.ones(2, 3)}
    scores = AttentionEntropy().scores(model, [batch | {"labels": torch.tensor([1, 0])}])
    # No entropy is above that of even attention to three tokens; labels of classes do not mask positions.
    assert scores.shape == (3, 4) and (scores <= math.log(3) + 1e-6).all()
    assert torch.equal(scores, AttentionEntropy().scores(model, [batch]))
