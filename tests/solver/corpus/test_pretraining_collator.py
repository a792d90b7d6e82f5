import math

import numpy as np
import pytest
import torch

from hf_mwp.solver.corpus import PreTrainingCollator, PreTrainingEncoder
from hf_mwp.solver.corpus.pretraining_encoder import KEYWORD, NUMBER, SPECIAL
from tests.pretraining import TAGS, text_processor, tiny_pairs
from tests.tiny import tiny_tokenizer


@pytest.fixture(scope="module")
def processor():
    return text_processor(indexed_numbers=True)


@pytest.fixture(scope="module")
def rows(processor):
    columns = PreTrainingEncoder(processor, TAGS, "jieba").encode(*zip(*tiny_pairs(60), strict=True))
    return [dict(zip(columns, values, strict=True)) for values in zip(*columns.values(), strict=True)]


def row_of(classes, units=None, key=1, first_id=10):
    """A made-up text."""
    units = list(range(len(classes))) if units is None else units
    ids = 5 + np.arange(first_id, first_id + len(classes)) % 30
    return {"input_ids": ids, "mask_class": np.array(classes), "mask_unit": np.array(units), "text_key": key}


def masks(collator, row, count):
    """Chosen places of so many texts that differ in nothing but their keys."""
    return collator([{**row, "text_key": key} for key in range(count)])["labels"].ne(-100)


def test_padding(processor, rows):
    batch = PreTrainingCollator(processor)(rows[:6])
    longest = max(len(row["input_ids"]) for row in rows[:6])
    positions = batch.pop("masked_positions")
    assert torch.equal(positions, batch["labels"].flatten().ne(-100).nonzero().squeeze(1))
    assert set(batch) == {"input_ids", "attention_mask", "labels", "pos_labels"}
    assert all(value.shape == (6, longest) and value.dtype == torch.int64 for value in batch.values())
    for index, row in enumerate(rows[:6]):
        size = len(row["input_ids"])
        assert batch["attention_mask"][index].tolist() == [1] * size + [0] * (longest - size)
        assert batch["pos_labels"][index].tolist() == [*row["pos_labels"], *[-100] * (longest - size)]
        assert (batch["input_ids"][index, size:] == processor.tokenizer.pad_token_id).all()
        assert (batch["labels"][index, size:] == -100).all()
        labelled = batch["labels"][index, :size].numpy()
        assert (labelled[labelled != -100] == row["input_ids"][labelled != -100]).all()


def test_special_tokens_are_never_chosen(processor, rows):
    collator = PreTrainingCollator(processor, mlm_probability=0.9)
    for row in rows[:10]:
        chosen = masks(collator, row, 20)
        assert not chosen[:, row["mask_class"] == SPECIAL].any()
        assert chosen[:, row["mask_class"] != SPECIAL].any(dim=0).all()


@pytest.mark.parametrize("probability", [0.15, 0.4])
def test_the_share_of_chosen_tokens(processor, probability):
    collator = PreTrainingCollator(processor, mlm_probability=probability)
    row = row_of([SPECIAL, *[1] * 20, *[KEYWORD] * 4, *[NUMBER] * 3, SPECIAL])
    chosen = masks(collator, row, 2000).float().sum(dim=1)
    assert chosen.mean() == pytest.approx(27 * probability, rel=0.01)
    assert set(chosen.tolist()) <= {math.floor(27 * probability), math.ceil(27 * probability)}


def test_at_least_one_token_is_chosen_where_there_is_one(processor):
    collator = PreTrainingCollator(processor, mlm_probability=0.01)
    assert (masks(collator, row_of([0, 1, 1, 0]), 50).sum(dim=1) == 1).all()
    assert (masks(collator, row_of([0, 2, 2, 2, 2, 0], [0, 1, 1, 1, 1, 2]), 5).sum(dim=1) == 4).all()
    assert not masks(collator, row_of([0, 0]), 5).any()


def test_first_choices_go_with_the_weights(processor):
    # One token of each text is chosen; of 6 ordinary ones, a keyword of weight 3 and a number of weight 1.5.
    collator = PreTrainingCollator(processor, mlm_probability=0.001, keyword_weight=3.0, number_weight=1.5)
    counts = masks(collator, row_of([1] * 6 + [KEYWORD, NUMBER]), 20_000).float().mean(dim=0)
    expected = torch.tensor([1.0] * 6 + [3.0, 1.5]) / 10.5
    assert (counts - expected).abs().max() < 0.012


def test_equal_weights_favour_nothing(processor):
    collator = PreTrainingCollator(processor, mlm_probability=0.25, keyword_weight=1.0, number_weight=1.0)
    counts = masks(collator, row_of([1] * 10 + [KEYWORD] * 5 + [NUMBER] * 5), 8000).float().mean(dim=0)
    assert (counts - 0.25).abs().max() < 0.025


def test_keywords_are_masked_whole(processor):
    collator = PreTrainingCollator(processor, mlm_probability=0.3, keyword_weight=5.0)
    row = row_of([0, 1, 2, 2, 2, 1, 3, 3, 1, 1, 0], [0, 1, 2, 2, 2, 3, 4, 4, 5, 6, 7])
    chosen = masks(collator, row, 400)
    for start, end in ((2, 5), (6, 8)):
        part = chosen[:, start:end]
        assert part.any(dim=1).equal(part.all(dim=1)) and part.any() and not part.all()


def test_eighty_ten_ten(processor):
    collator = PreTrainingCollator(processor, mlm_probability=0.5)
    row = row_of([1] * 40)
    ids = torch.from_numpy(row["input_ids"])
    actions = torch.zeros(3)
    batch = collator([{**row, "text_key": key} for key in range(1500)])
    chosen, new = batch["labels"] != -100, batch["input_ids"]
    ids = ids.expand_as(new)
    assert (new[~chosen] == ids[~chosen]).all()
    new, old = new[chosen], ids[chosen]
    masked = new == processor.tokenizer.mask_token_id
    actions += torch.tensor([masked.sum(), (new[~masked] != old[~masked]).sum(), (new == old).sum()])
    random = new[~masked & (new != old)]
    assert len(set(random.tolist())) > 20 and not set(random.tolist()) & set(processor.tokenizer.all_special_ids)
    # A random token is the same one now and then.
    assert (actions / actions.sum() - torch.tensor([0.8, 0.1, 0.1])).abs().max() < 0.012


def test_a_mask_depends_on_seed_epoch_and_text_alone(processor, rows):
    first, second = PreTrainingCollator(processor, seed=3), PreTrainingCollator(processor, seed=3)
    torch.manual_seed(0)
    np.random.seed(0)
    whole = first(rows[:8])
    torch.manual_seed(1)
    np.random.seed(1)
    order = [5, 2, 7]
    part = second([rows[index] for index in order])
    for name in ("input_ids", "labels"):
        width = min(whole[name].shape[1], part[name].shape[1])
        assert torch.equal(part[name][:, :width], whole[name][order][:, :width])
    assert torch.equal(first(rows[:8])["labels"], whole["labels"])
    first.epoch = 1
    assert not torch.equal(first(rows[:8])["labels"], whole["labels"])
    assert not torch.equal(PreTrainingCollator(processor, seed=4)(rows[:8])["labels"], whole["labels"])


def test_masks_do_not_change_between_versions(processor):
    # A change here makes figures of held-out texts incomparable with earlier ones.
    batch = PreTrainingCollator(processor, seed=42)([row_of([0, *[1] * 16, 2, 2, 3, 0], key=12345)])
    assert torch.nonzero(batch["labels"][0] != -100).flatten().tolist() == [4, 10, 17]
    assert batch["input_ids"][0, [4, 10, 17]].tolist() == [4, 6, 4]


def test_what_an_evaluation_needs(processor, rows):
    numbered = [{**row, "row_index": 7 + index} for index, row in enumerate(rows[:4])]
    batch = PreTrainingCollator(processor, keep_original=True)(numbered)
    assert batch["row_index"].tolist() == [7, 8, 9, 10]
    assert batch["original_ids"][1, : len(rows[1]["input_ids"])].tolist() == rows[1]["input_ids"].tolist()
    chosen = batch["labels"] != -100
    assert torch.equal(batch["labels"][chosen], batch["original_ids"][chosen]) and chosen.any()
    assert batch["mask_class"][0, : len(rows[0]["mask_class"])].tolist() == rows[0]["mask_class"].tolist()


def test_without_masks(processor, rows):
    batch = PreTrainingCollator(processor, mlm_probability=0.0, keep_original=True)(rows[:3])
    assert "labels" not in batch and "original_ids" not in batch
    assert batch["input_ids"][0, : len(rows[0]["input_ids"])].tolist() == rows[0]["input_ids"].tolist()


def test_a_tokenizer_without_a_mask_token():
    tokenizer = tiny_tokenizer()
    tokenizer.mask_token = None
    processor = text_processor()
    processor.tokenizer = tokenizer
    with pytest.raises(ValueError, match="mask token.*`mlm_loss_weight=0`"):
        PreTrainingCollator(processor)
    PreTrainingCollator(processor, mlm_probability=0.0)
