import pytest
import torch
from peft import LoraConfig, inject_adapter_in_model

from hf_mwp.solver.models import GTSConfig, GTSDecoder
from hf_mwp.solver.models.gts.tree_search import uses_numpy


@pytest.fixture
def decoder():
    torch.manual_seed(0)
    config = GTSConfig(hidden_size=12, operator_embedding_size=6, constants=["1"], max_length=9, initializer_range=0.6)
    return GTSDecoder(config).eval()


@pytest.fixture
def states():
    return torch.randn(3, 7, 12, generator=torch.Generator().manual_seed(1))


@pytest.mark.parametrize("num_beams", [1, 6])
def test_a_problem_alone_has_the_trees_that_it_has_in_a_batch(decoder, states, num_beams):
    mask = torch.tensor([[1] * 7, [1] * 5 + [0] * 2, [1] * 6 + [0]])
    positions = torch.tensor([[1, 3, 5], [2, 4, -1], [1, -1, 3]])
    options = {"num_beams": num_beams, "num_return_sequences": num_beams}
    together = decoder.generate(states, mask, positions, **options)
    for row in range(3):
        alone = decoder.generate(states[[row]], mask[[row]], positions[[row]], **options)
        assert torch.equal(alone.finished[0], together.finished[row])
        torch.testing.assert_close(alone.scores[0], together.scores[row], atol=1e-4, rtol=0)
        width = alone.sequences.shape[-1]
        assert torch.equal(alone.sequences[0], together.sequences[row, :, :width])


def test_padding_on_the_left_changes_nothing(decoder, states):
    mask = torch.tensor([[0, 0, 1, 1, 1, 1, 1]])
    options = {"num_beams": 4, "num_return_sequences": 4}
    padded = decoder.generate(states[:1], mask, torch.tensor([[3, 5, -1]]), **options)
    unpadded = decoder.generate(states[:1, 2:], None, torch.tensor([[1, 3, -1]]), **options)
    assert torch.equal(padded.sequences, unpadded.sequences)
    torch.testing.assert_close(padded.scores, unpadded.scores)


def test_changed_weights_change_the_scores(decoder, states):
    positions = torch.tensor([[1, 2]])
    before = decoder.generate(states[:1], None, positions).scores
    with torch.no_grad():
        decoder.candidate_scorer.score.weight += 1
    assert not torch.equal(decoder.generate(states[:1], None, positions).scores, before)


def test_adapters_in_the_decoder_are_not_ignored(decoder, states):
    positions = torch.tensor([[1, 2], [3, 4]])
    before = decoder.generate(states[:1], None, positions[:1]).scores
    inject_adapter_in_model(LoraConfig(r=2, target_modules=["query"], init_lora_weights=False), decoder)
    decoder.eval()
    together = decoder.generate(states[:2], None, positions).scores
    alone = decoder.generate(states[:1], None, positions[:1]).scores
    assert (alone - before).abs().max() > 1e-3
    torch.testing.assert_close(alone[0], together[0], atol=1e-4, rtol=0)


def test_dropout_in_training_mode_is_not_ignored(decoder):
    decoder.config.dropout = decoder.dropout.p = 0.5
    assert uses_numpy(decoder, torch.zeros(1, 2, 3))
    assert not uses_numpy(decoder.train(), torch.zeros(1, 2, 3))


def test_batches_half_precision_and_other_devices_stay_with_torch(decoder):
    assert uses_numpy(decoder, torch.zeros(1, 2, 3))
    assert not uses_numpy(decoder, torch.zeros(2, 2, 3))
    assert not uses_numpy(decoder, torch.zeros(1, 2, 3, dtype=torch.bfloat16))
    assert not uses_numpy(decoder, torch.zeros(1, 2, 3, device="meta"))
    with torch.autocast("cpu", torch.bfloat16):
        assert not uses_numpy(decoder, torch.zeros(1, 2, 3))
