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


@pytest.mark.parametrize("beams, wanted", [(1, 1), (6, 6)])
def test_a_problem_alone_has_the_trees_that_it_has_in_a_batch(decoder, beams, wanted):
    generator = torch.Generator().manual_seed(1)
    states = torch.randn(3, 7, 12, generator=generator)
    mask = torch.tensor([[1] * 7, [1] * 5 + [0] * 2, [1] * 6 + [0]])
    positions = torch.tensor([[1, 3, 5], [2, 4, -1], [1, -1, 3]])
    options = {"num_beams": beams, "num_return_sequences": wanted}
    together = decoder.generate(states, mask, positions, **options)
    for row in range(3):
        alone = decoder.generate(states[row : row + 1], mask[row : row + 1], positions[row : row + 1], **options)
        assert alone.finished.tolist() == [together.finished[row].tolist()]
        torch.testing.assert_close(alone.scores[0], together.scores[row], atol=1e-4, rtol=0)
        width = alone.sequences.shape[-1]
        assert alone.sequences[0].tolist() == together.sequences[row, :, :width].tolist()


def test_padding_on_the_left_changes_nothing(decoder):
    generator = torch.Generator().manual_seed(1)
    states, mask = torch.randn(1, 7, 12, generator=generator), torch.tensor([[0, 0, 1, 1, 1, 1, 1]])
    padded = decoder.generate(states, mask, torch.tensor([[3, 5, -1]]), num_beams=4, num_return_sequences=4)
    plain = decoder.generate(states[:, 2:], None, torch.tensor([[1, 3, -1]]), num_beams=4, num_return_sequences=4)
    assert padded.sequences.tolist() == plain.sequences.tolist()
    torch.testing.assert_close(padded.scores, plain.scores)


def test_it_follows_the_weights(decoder):
    states, positions = torch.randn(1, 5, 12), torch.tensor([[1, 2]])
    before = decoder.generate(states, None, positions).scores
    with torch.no_grad():
        decoder.candidate_scorer.score.weight += 1
    assert not torch.equal(decoder.generate(states, None, positions).scores, before)


def test_adapters_in_the_decoder_are_not_ignored(decoder):
    states, positions = torch.randn(2, 5, 12), torch.tensor([[1, 2], [3, 4]])
    before = decoder.generate(states[:1], None, positions[:1]).scores
    inject_adapter_in_model(LoraConfig(r=2, target_modules=["query"], init_lora_weights=False), decoder)
    together = decoder.eval().generate(states, None, positions).scores
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
