import math

import numpy as np
import pytest
import torch

from hf_mwp.solver.corpus import PreTrainingCollator, PreTrainingEncoder
from hf_mwp.solver.corpus.pretraining_encoder import KEYWORD, NUMBER, SPECIAL
from tests.pretraining import TAGS, text_processor, tiny_pairs
from tests.solver.encoded_rows import rows_of
from tests.tiny import tiny_tokenizer


@pytest.fixture(scope="module")
def processor():
    return text_processor(indexed_numbers=True)


@pytest.fixture(scope="module")
def rows(processor):
    texts, words = zip(*tiny_pairs(10), strict=True)
    return rows_of(PreTrainingEncoder(processor, TAGS, "jieba").encode(texts, words))


def row_of(classes, units=None, key=1):
    """An encoded text with these masking classes, and by default one unit for each token."""
    units = range(len(classes)) if units is None else units
    ids = 5 + (10 + np.arange(len(classes))) % 30
    return {"input_ids": ids, "mask_class": np.array(classes), "mask_unit": np.array(units), "text_key": key}


def copies(row, count):
    """Texts that differ only in their keys."""
    return [{**row, "text_key": key} for key in range(count)]


def masks(collator, row, count):
    """The masked positions of `count` texts that differ only in their keys."""
    return collator(copies(row, count))["labels"].ne(-100)


def test_rows_are_padded(processor, rows):
    batch = PreTrainingCollator(processor)(rows[:6])
    longest = max(len(row["input_ids"]) for row in rows[:6])
    positions = batch.pop("masked_positions")
    assert torch.equal(positions, batch["labels"].flatten().ne(-100).nonzero().squeeze(1))
    assert set(batch) == {"input_ids", "attention_mask", "labels", "pos_labels"}
    for value in batch.values():
        assert value.shape == (6, longest)
        assert value.dtype == torch.int64
    for index, row in enumerate(rows[:6]):
        size = len(row["input_ids"])
        padding = [-100] * (longest - size)
        assert batch["attention_mask"][index].tolist() == [1] * size + [0] * (longest - size)
        assert batch["pos_labels"][index].tolist() == [*row["pos_labels"], *padding]
        assert (batch["input_ids"][index, size:] == processor.tokenizer.pad_token_id).all()
        assert batch["labels"][index, size:].tolist() == padding
        labels = batch["labels"][index, :size].numpy()
        assert (labels[labels != -100] == row["input_ids"][labels != -100]).all()


def test_special_tokens_are_never_masked(processor, rows):
    collator = PreTrainingCollator(processor, mlm_probability=0.9)
    for row in rows:
        is_special = row["mask_class"] == SPECIAL
        masked = masks(collator, row, 20)
        assert not masked[:, is_special].any()
        assert masked[:, ~is_special].any(dim=0).all()


@pytest.mark.parametrize("probability", [0.15, 0.4])
def test_share_of_masked_tokens(processor, probability):
    collator = PreTrainingCollator(processor, mlm_probability=probability)
    row = row_of([SPECIAL, *[1] * 20, *[KEYWORD] * 4, *[NUMBER] * 3, SPECIAL])
    num_masked = masks(collator, row, 2000).float().sum(dim=1)
    assert num_masked.mean() == pytest.approx(27 * probability, rel=0.01)
    assert set(num_masked.tolist()) <= {math.floor(27 * probability), math.ceil(27 * probability)}


@pytest.mark.parametrize(
    ("classes", "units", "expected"),
    [([0, 1, 1, 0], None, 1), ([0, 2, 2, 2, 2, 0], [0, 1, 1, 1, 1, 2], 4), ([0, 0], None, 0)],
)
def test_at_least_one_unit_is_masked(processor, classes, units, expected):
    collator = PreTrainingCollator(processor, mlm_probability=0.01)
    assert set(masks(collator, row_of(classes, units), 50).sum(dim=1).tolist()) == {expected}


@pytest.mark.parametrize(
    ("probability", "weights", "classes", "expected"),
    [
        # One token of each text is masked; of 6 ordinary ones, a keyword of weight 3 and a number of weight 1.5.
        (0.001, (3.0, 1.5), [1] * 6 + [KEYWORD, NUMBER], [1 / 10.5] * 6 + [3 / 10.5, 1.5 / 10.5]),
        (0.25, (1.0, 1.0), [1] * 10 + [KEYWORD] * 5 + [NUMBER] * 5, [0.25] * 20),
    ],
)
def test_masking_rates_go_with_the_weights(processor, probability, weights, classes, expected):
    collator = PreTrainingCollator(processor, probability, *weights)
    rates = masks(collator, row_of(classes), 20_000).float().mean(dim=0)
    assert rates.tolist() == pytest.approx(expected, abs=0.012)


def test_units_are_masked_whole(processor):
    collator = PreTrainingCollator(processor, mlm_probability=0.3, keyword_weight=5.0)
    row = row_of([0, 1, 2, 2, 2, 1, 3, 3, 1, 1, 0], [0, 1, 2, 2, 2, 3, 4, 4, 5, 6, 7])
    masked = masks(collator, row, 400)
    for start, end in ((2, 5), (6, 8)):
        unit = masked[:, start:end]
        assert torch.equal(unit.any(dim=1), unit.all(dim=1))
        assert unit.any()
        assert not unit.all()


def test_eighty_ten_ten(processor):
    collator = PreTrainingCollator(processor, mlm_probability=0.5)
    row = row_of([1] * 40)
    batch = collator(copies(row, 1500))
    masked = batch["labels"] != -100
    original_ids = torch.from_numpy(row["input_ids"]).expand_as(masked)
    assert torch.equal(batch["input_ids"][~masked], original_ids[~masked])
    ids = batch["input_ids"][masked]
    is_mask_token = ids == processor.tokenizer.mask_token_id
    is_unchanged = ids == original_ids[masked]
    random_ids = set(ids[~is_mask_token & ~is_unchanged].tolist())
    assert len(random_ids) > 20
    assert not random_ids & set(processor.tokenizer.all_special_ids)
    # A random token is the same one now and then.
    shares = [is_mask_token.float().mean(), is_unchanged.float().mean()]
    assert shares == pytest.approx([0.8, 0.1], abs=0.012)


def test_masks_depend_only_on_seed_epoch_and_text(processor, rows):
    def labels(seed=3, epoch=0, indices=range(8)):
        collator = PreTrainingCollator(processor, seed=seed)
        collator.epoch = epoch
        return collator([rows[index] for index in indices])

    batch = labels()
    np.random.seed(1)
    torch.manual_seed(1)
    subset = labels(indices=[5, 2, 7])
    for name in ("input_ids", "labels"):
        width = min(batch[name].shape[1], subset[name].shape[1])
        assert torch.equal(subset[name][:, :width], batch[name][[5, 2, 7], :width])
    assert not torch.equal(labels(epoch=1)["labels"], batch["labels"])
    assert not torch.equal(labels(seed=4)["labels"], batch["labels"])


def test_masks_do_not_change_between_versions(processor):
    # A change here makes results on held-out texts incomparable with earlier ones.
    batch = PreTrainingCollator(processor, seed=42)([row_of([0, *[1] * 16, 2, 2, 3, 0], key=12345)])
    assert torch.nonzero(batch["labels"][0] != -100).flatten().tolist() == [4, 10, 17]
    assert batch["input_ids"][0, [4, 10, 17]].tolist() == [4, 6, 4]


def test_evaluation_batches_have_the_original_texts(processor, rows):
    numbered = [{**row, "row_index": 7 + index} for index, row in enumerate(rows[:4])]
    batch = PreTrainingCollator(processor, keep_original=True)(numbered)
    assert batch["row_index"].tolist() == [7, 8, 9, 10]
    size = len(rows[1]["input_ids"])
    assert batch["original_ids"][1, :size].tolist() == rows[1]["input_ids"].tolist()
    assert batch["mask_class"][1, :size].tolist() == rows[1]["mask_class"].tolist()
    masked = batch["labels"] != -100
    assert masked.any()
    assert torch.equal(batch["labels"][masked], batch["original_ids"][masked])


def test_without_masked_language_modelling_nothing_is_masked(processor, rows):
    batch = PreTrainingCollator(processor, mlm_probability=0.0, keep_original=True)(rows[:1])
    assert "labels" not in batch
    assert "original_ids" not in batch
    assert batch["input_ids"][0].tolist() == rows[0]["input_ids"].tolist()


def test_masking_needs_a_mask_token():
    processor = text_processor()
    processor.tokenizer = tiny_tokenizer()
    processor.tokenizer.mask_token = None
    with pytest.raises(ValueError, match="mask token.*`mlm_loss_weight=0`"):
        PreTrainingCollator(processor)
    PreTrainingCollator(processor, mlm_probability=0.0)
