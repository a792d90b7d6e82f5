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
from tests.compress.pruning.encoders import CLASSES, FOREIGN, tiny_batch, tiny_encoder


def batches(model, labels=False):
    found = [tiny_batch(model, rows=3), tiny_batch(model, rows=2, length=6)]
    for each in found:
        if labels:
            each["labels"] = torch.arange(len(each["input_ids"])) % 3
    return found


def test_weight_norm_by_hand():
    model = tiny_encoder("bert")
    for parts in layer_parts(model):
        for factor, linear in enumerate((parts.query, parts.key, parts.value), start=1):
            # Head h of four, six rows each: all weights are h times the factor, up to the sign.
            rows = torch.arange(4.0).repeat_interleave(6)[:, None].expand(24, 24) * factor
            linear.weight.data = torch.where(torch.eye(24).bool(), -rows, rows)
    assert torch.equal(WeightNorm().scores(model), torch.tensor([[0.0, 6.0, 12.0, 18.0]] * 3, dtype=torch.float64))


def test_weight_norm_of_a_fused_layer_by_hand():
    model = tiny_encoder("modernbert")
    for parts in layer_parts(model):
        # Queries, keys, values: of each four heads of six rows.
        rows = (
            torch.arange(3.0).repeat_interleave(24)[:, None]
            + torch.arange(4.0).repeat_interleave(6).repeat(3)[:, None]
        )
        parts.query_key_value.weight.data = rows.expand(72, 24).clone()
    expected = [[3.0, 6.0, 9.0, 12.0]] * 3
    assert WeightNorm().scores(model).tolist() == expected


def test_weight_norm_of_a_layer_without_heads_is_empty():
    model = prune_heads(tiny_encoder("modernbert"), {1: [0, 1, 2, 3]})
    assert WeightNorm().scores(model).isfinite().sum(1).tolist() == [4, 0, 4]


@pytest.mark.parametrize("name", FOREIGN)
def test_scores_of_other_encoders(name):
    model = tiny_encoder(name, "ForSequenceClassification")
    batch = {**tiny_batch(model), "labels": torch.tensor([0, 2, 1])}
    scores = {each: each.scores(model, [batch]) for each in (AttentionEntropy(), GateGradient())}
    entropies, gradients = scores.values()
    model.set_attn_implementation("eager")
    with torch.no_grad():
        maps = model(**batch, output_attentions=True).attentions
        for layer, each in enumerate(maps):
            entropy = -(each * each.clamp(min=1e-30).log()).sum(-1) * batch["attention_mask"][:, None]
            mean = entropy.double().sum((0, 2)) / batch["attention_mask"].sum()
            torch.testing.assert_close(entropies[layer], mean, rtol=1e-5, atol=1e-6)
        with HeadGates(model) as gates:
            for layer, head in ((0, 1), (2, 3)):
                losses = []
                for value in (1.1, 0.9):
                    gates.open()
                    gates.values[layer][head] = value
                    losses.append(model(**batch).loss.item())
                slope = abs(losses[0] - losses[1]) / 0.2
                assert gradients[layer, head].item() == pytest.approx(slope, rel=0.02, abs=1e-5)


def test_layers_that_share_their_weights_have_one_row():
    model = tiny_encoder("albert", num_hidden_groups=1, attn_implementation="eager")
    batch = tiny_batch(model)
    with torch.no_grad():
        maps = torch.stack(model(**batch, output_attentions=True).attentions)
    entropy = -(torch.special.xlogy(maps, maps)).sum(-1) * batch["attention_mask"][:, None]
    mean = entropy.sum((1, 3)) / batch["attention_mask"].sum()
    scores = AttentionEntropy().scores(model, [batch])
    torch.testing.assert_close(scores, mean.mean(0, keepdim=True).double(), rtol=1e-5, atol=1e-6)
    assert WeightNorm().scores(model).shape == (1, 4)


@pytest.mark.parametrize("name", CLASSES)
def test_even_attention_has_the_entropy_of_its_length(name):
    model = tiny_encoder(name)
    for parts in layer_parts(model):
        parts.query.weight.data.zero_(), parts.query.bias.data.zero_()
    # Texts of 9, 7 and 5 tokens, each query counts once; padded keys get no weight.
    batch = tiny_batch(model)
    lengths = batch["attention_mask"].sum(1).tolist()
    assert lengths == [9, 7, 5]
    expected = sum(length * math.log(length) for length in lengths) / sum(lengths)
    torch.testing.assert_close(
        AttentionEntropy().scores(model, [batch]), torch.full((3, 4), expected, dtype=torch.float64), rtol=1e-5, atol=0
    )
    peaks = AttentionPeak().scores(model, [batch])
    torch.testing.assert_close(peaks, torch.full((3, 4), 3 / 21, dtype=torch.float64), rtol=1e-5, atol=0)
    assert model.config._attn_implementation == "sdpa"


def test_the_mean_over_texts_does_not_depend_on_their_batches():
    model = tiny_encoder("roberta")
    whole = tiny_batch(model)
    apart = [{name: value[row : row + 1] for name, value in whole.items()} for row in range(3)]
    for importance in (AttentionEntropy(), AttentionPeak()):
        torch.testing.assert_close(importance.scores(model, [whole]), importance.scores(model, apart))


def test_a_model_in_double_is_scored_in_double():
    model = tiny_encoder("roberta").double()
    model.set_attn_implementation("eager")
    batch = tiny_batch(model)
    with torch.no_grad():
        maps = model(**batch, output_attentions=True).attentions
    mask = batch["attention_mask"].bool()
    expected = [
        [-torch.xlogy(each[:, head], each[:, head]).sum(-1)[mask].mean() for head in range(4)] for each in maps
    ]
    torch.testing.assert_close(
        AttentionEntropy().scores(model, [batch]), torch.tensor(expected), rtol=0, atol=1e-12, check_dtype=False
    )


def test_gate_gradient_is_the_slope_of_the_loss():
    model = tiny_encoder("bert", "ForSequenceClassification")
    (batch,) = batches(model, labels=True)[:1]
    scores = GateGradient().scores(model, [batch])
    with HeadGates(model) as gates, torch.no_grad():
        for layer, head in ((0, 1), (2, 3)):
            losses = []
            for factor in (0.99, 1.01):
                gates.open()
                gates.values[layer][head] = factor
                losses.append(model(**batch).loss.item())
            assert scores[layer, head] == pytest.approx(abs(losses[1] - losses[0]) / 0.02, rel=2e-2, abs=1e-5)
    assert all(parameter.grad is None for parameter in model.parameters())


def test_normalisations_by_hand():
    values = torch.tensor([1.0, 3.0, 5.0])
    assert torch.equal(min_max(values), torch.tensor([0.0, 0.5, 1.0]))
    assert torch.equal(min_max(torch.full((3,), 7.0)), torch.zeros(3))
    assert min_max(torch.tensor([2.0, torch.nan, 4.0])).nan_to_num(-1.0).tolist() == [0.0, -1.0, 1.0]


def test_alpha_goes_from_entropy_to_norm():
    model = tiny_encoder("bert")
    given = batches(model)
    norm = WeightNorm().scores(model)
    entropy = AttentionEntropy().scores(model, given)

    for alpha in (0.0, 0.3, 1.0):
        found = CombinedImportance(alpha).scores(model, given)
        torch.testing.assert_close(found, alpha * min_max(norm) + (1 - alpha) * min_max(entropy))
    # The norm alone needs no examples.
    assert CombinedImportance(1.0).scores(model).shape == (3, 4)


def test_scores_of_an_uneven_model_end_early_and_nothing_is_changed():
    model = prune_heads(tiny_encoder("distilbert", "ForSequenceClassification"), {0: [0], 2: [0, 1, 2, 3]}).train()
    # A part that is not trained.
    model.base_model.embeddings.eval()
    given = batches(model, labels=True)
    state = torch.random.get_rng_state()
    for importance in (RandomImportance(3), WeightNorm(), AttentionEntropy(), GateGradient(), CombinedImportance()):
        scores = importance.scores(model, given)
        assert scores.isfinite().sum(1).tolist() == [3, 4, 0]
        assert torch.equal(scores.nan_to_num(), importance.scores(model, given).nan_to_num())
    assert model.training and not model.base_model.embeddings.training
    assert torch.equal(state, torch.random.get_rng_state())
    assert model.config._attn_implementation == "sdpa"


def test_what_cannot_be_scored():
    model = tiny_encoder("bert")
    with pytest.raises(ValueError, match="AttentionEntropy.*batches"):
        AttentionEntropy().scores(model)
    with pytest.raises(ValueError, match="GateGradient.*labels"):
        GateGradient().scores(model, batches(model))
    with pytest.raises(ValueError, match=r"`alpha`.* 0 to 1.* 1\.5"):
        CombinedImportance(1.5)
    layer_parts(model)[1].key.weight.data[3] = torch.nan
    with pytest.raises(ValueError, match="WeightNorm.*heads of layer 1"):
        WeightNorm().scores(model)


def test_the_lowest_heads_go():
    nan = math.nan
    scores = torch.tensor([[0.1, 0.2, 0.9, 0.8], [0.3, 0.7, nan, nan], [0.15, 0.6, 0.5, 0.4]])
    assert choose_heads(scores, 0.0) == {}
    # Ten heads: 30 % are three; 39 % are three as well.
    assert choose_heads(scores, 0.3) == choose_heads(scores, 0.39) == {0: [0, 1], 2: [0]}
    assert choose_heads(scores, 0.5) == {0: [0, 1], 1: [0], 2: [0, 3]}
    # The second layer keeps its only other head.
    assert choose_heads(scores, 0.7) == {0: [0, 1, 3], 1: [0], 2: [0, 2, 3]}
    # What was chosen before stays so, whatever its score is now.
    assert choose_heads(scores, 0.3, gone={0: [2]}) == {0: [0, 2], 2: [0]}
    with pytest.raises(ValueError, match="ratio.* 1"):
        choose_heads(scores, 1.0)
    with pytest.raises(ValueError, match=r"\b8 heads.*\b7\b.*\b1 "):
        choose_heads(scores, 0.8)


def test_of_equal_scores_the_lower_layer_goes_first():
    assert choose_heads(torch.zeros(2, 3), 0.5) == {0: [0, 1], 1: [0]}


def test_entropies_of_a_classifier_with_a_decoder():
    sizes = {"d_model": 24, "encoder_layers": 1, "decoder_layers": 1, "vocab_size": 40, "num_labels": 3}
    sizes |= {"encoder_attention_heads": 4, "decoder_attention_heads": 4, "max_position_embeddings": 32}
    model = BartForSequenceClassification(BartConfig(**sizes, pad_token_id=0, eos_token_id=3)).eval()
    batch = {"input_ids": torch.tensor([[5, 6, 3], [6, 7, 3]]), "attention_mask": torch.ones(2, 3)}
    scores = AttentionEntropy().scores(model, [batch | {"labels": torch.tensor([1, 0])}])
    # No entropy is above that of even attention to three tokens; labels of classes do not mask positions.
    assert scores.shape == (3, 4) and (scores <= math.log(3) + 1e-6).all()
    assert torch.equal(scores, AttentionEntropy().scores(model, [batch]))
