import copy
from functools import partial

import numpy as np
import pytest
import torch
from transformers import DataCollatorForLanguageModeling, DataCollatorWithPadding

from hf_mwp.data.collator import MwpCollator
from hf_mwp.distillation.cache_fingerprint import (
    describe_collator,
    fingerprint,
    hash_model,
    hash_processing,
    row_key,
)
from tests.tiny import tiny_classifier, tiny_processor, tiny_solver, tiny_tokenizer


def test_models_are_told_apart_by_weights_config_and_class():
    model = tiny_classifier()
    known = hash_model(model)
    assert hash_model(tiny_classifier()) == hash_model(copy.deepcopy(model)) == known
    assert hash_model(tiny_classifier(seed=1)) != known
    model.config.name_or_path = "elsewhere"
    assert hash_model(model) == known
    with torch.no_grad():
        model.classifier.bias[0] += 1e-6
    assert hash_model(model) != known
    # The same weights computed with another activation.
    assert hash_model(tiny_classifier(hidden_act="relu")) != known
    assert hash_model(torch.nn.Linear(2, 2)) != known
    assert hash_model(model.half()) != hash_model(model.float())


def test_a_solver_is_the_same_after_saving(tmp_path):
    solver = tiny_solver(tiny_processor())
    solver.save_pretrained(tmp_path)
    assert hash_model(type(solver).from_pretrained(tmp_path)) == hash_model(solver)


def test_processors_are_told_apart_by_their_tokens_and_settings():
    known = hash_processing(tiny_processor())
    assert hash_processing(tiny_processor()) == known
    assert hash_processing(tiny_processor(indexed_numbers=True)) != known
    assert hash_processing(tiny_processor(max_length=64)) != known
    tokenizer = tiny_tokenizer()
    known = hash_processing(tokenizer)
    tokenizer(["一", "小明有"], padding=True, truncation=True, max_length=2)  # leaves traces in the tokenizer
    assert hash_processing(tokenizer) == known
    assert hash_processing(None) is None


def test_collators_are_told_apart_by_what_they_do():
    tokenizer = tiny_tokenizer()
    padding = [DataCollatorWithPadding(tokenizer, pad_to_multiple_of=n) for n in (8, 16, 8)]
    known = [fingerprint({"collator": describe_collator(each)}) for each in padding]
    assert known[0] == known[2] != known[1]
    masking = [DataCollatorForLanguageModeling(tokenizer, mlm_probability=p) for p in (0.15, 0.2)]
    assert describe_collator(masking[0]) != describe_collator(masking[1])
    assert describe_collator(MwpCollator(tiny_processor())) != describe_collator(
        MwpCollator(tiny_processor(indexed_numbers=True))
    )

    def one(rows, length=1):
        return rows

    def other(rows, length=1):
        return rows[:length]

    assert describe_collator(one) != describe_collator(other)
    assert describe_collator(partial(other, length=1)) != describe_collator(partial(other, length=2))


def test_rows_are_recognised_by_their_numbers():
    row = {"input_ids": [1, 2, 3], "labels": 2, "text": "x", "nested": [[1], [2, 3]], "score": 0.5, "none": None}
    known = row_key(row)
    assert row_key(dict(reversed(row.items()))) == known
    assert row_key({**row, "input_ids": torch.tensor([1, 2, 3])}) == known
    assert row_key({**row, "input_ids": np.array([1, 2, 3]), "labels": np.int64(2)}) == known
    for change in (
        {"input_ids": [1, 2]},
        {"input_ids": [1, 2, 4]},
        {"labels": 3},
        {"text": "y"},
        {"nested": [[1, 2], [3]]},
        {"score": 0.25},
        {"none": 0},
    ):
        assert row_key({**row, **change}) != known, change
    assert all(0 <= half < 1 << 64 for half in known)
    assert row_key({"a": [0.5, 1.5]}) == row_key({"a": torch.tensor([0.5, 1.5])})
    assert row_key({"pixels": np.zeros((2, 3))}) != row_key({"pixels": np.zeros((3, 2))})
    with pytest.raises(TypeError, match="`object`.*cache_teacher_outputs=False"):
        row_key({"input_ids": object()})
