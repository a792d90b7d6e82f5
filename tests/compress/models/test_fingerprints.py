import copy
import importlib.util
import os
import subprocess
import sys

import numpy as np
import pytest
import torch
from transformers import BertJapaneseTokenizer, BertTokenizer, DataCollatorForLanguageModeling, DataCollatorWithPadding

from hf_mwp.compress.distillation.objectives import HiddenStates
from hf_mwp.compress.losses import CKALoss
from hf_mwp.compress.models import fingerprints
from hf_mwp.compress.models.fingerprints import describe, hash_model, hash_processing, row_key
from hf_mwp.solver.batches.mwp_collator import MwpCollator
from hf_mwp.utils.job import digest_of
from tests.tiny import tiny_classifier, tiny_processor, tiny_solver, tiny_tokenizer


def test_model_hash_depends_on_weights_config_and_class():
    model = tiny_classifier()
    fingerprint = hash_model(model)
    assert hash_model(tiny_classifier()) == hash_model(copy.deepcopy(model)) == fingerprint
    model.config.name_or_path = "elsewhere"
    assert hash_model(model) == fingerprint
    with torch.no_grad():
        model.classifier.bias[0] += 1e-6
    assert hash_model(model) != fingerprint
    # The same weights computed with another activation.
    assert hash_model(tiny_classifier(hidden_act="relu")) != fingerprint
    assert hash_model(torch.nn.Linear(2, 2)) != fingerprint
    assert hash_model(model.half()) != hash_model(model.float())


def test_model_hash_depends_on_buffers_that_are_not_saved():
    model = tiny_classifier()
    model.register_buffer("head_gates", torch.ones(2, 2), persistent=False)
    model.register_forward_hook(lambda module, args, output: None)
    before = hash_model(model)
    assert hash_model(model) == before
    model.head_gates[1, 0] = 0.0
    assert hash_model(model) != before


def test_saved_solver_has_the_same_hash(tmp_path):
    solver = tiny_solver(tiny_processor())
    solver.save_pretrained(tmp_path)
    assert hash_model(type(solver).from_pretrained(tmp_path)) == hash_model(solver)


def test_processor_hash_depends_on_its_settings():
    fingerprint = hash_processing(tiny_processor())
    assert hash_processing(tiny_processor()) == fingerprint
    assert hash_processing(tiny_processor(indexed_numbers=True)) != fingerprint
    assert hash_processing(tiny_processor(max_length=64)) != fingerprint
    assert hash_processing(None) is None


def test_using_a_tokenizer_keeps_its_hash():
    tokenizer = tiny_tokenizer()
    before = hash_processing(tokenizer)
    tokenizer(["一", "小明有"], padding=True, truncation=True, max_length=2)  # changes the backend's settings
    assert hash_processing(tokenizer) == before


def fast_tokenizer(folder, do_lower_case):
    vocabulary = {token: index for index, token in enumerate(TOKENS)}
    return BertTokenizer(vocab=vocabulary, do_lower_case=do_lower_case)


def slow_tokenizer(folder, do_lower_case):
    (folder / "vocab.txt").write_text("\n".join(TOKENS))
    return BertJapaneseTokenizer(folder / "vocab.txt", do_lower_case=do_lower_case, word_tokenizer_type="basic")


TOKENS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "a", "A", "b"]


@pytest.mark.parametrize("make_tokenizer", [fast_tokenizer, slow_tokenizer])
@pytest.mark.parametrize(
    "fingerprint_of", [hash_processing, lambda tokenizer: describe(DataCollatorWithPadding(tokenizer))]
)
def test_tokenizers_of_one_vocabulary_differ_by_their_settings(make_tokenizer, fingerprint_of, tmp_path):
    fingerprint = fingerprint_of(make_tokenizer(tmp_path, True))
    assert fingerprint_of(make_tokenizer(tmp_path, True)) == fingerprint
    assert fingerprint_of(make_tokenizer(tmp_path, False)) != fingerprint


@pytest.mark.parametrize(
    ("make", "value", "other_value"),
    [
        (lambda size: DataCollatorWithPadding(tiny_tokenizer(), pad_to_multiple_of=size), 8, 16),
        (lambda share: DataCollatorForLanguageModeling(tiny_tokenizer(), mlm_probability=share), 0.15, 0.2),
        (lambda is_indexed: MwpCollator(tiny_processor(indexed_numbers=is_indexed)), False, True),
        (lambda is_squared: HiddenStates(CKALoss(squared=is_squared)), False, True),
    ],
    ids=["padding", "masking", "problems", "objective"],
)
def test_objects_differ_by_their_settings(make, value, other_value):
    fingerprint = digest_of(describe(make(value)))
    assert digest_of(describe(make(value))) == fingerprint
    assert digest_of(describe(make(other_value))) != fingerprint


MODULE = """
'A docstring.'
from functools import lru_cache, partial

LIMIT = 8

def collate(rows, start=0):
    'A docstring.'
    return rows[start:LIMIT]

def closure(limit):
    return lambda rows: rows[:limit]

def default(limit):
    return lambda rows, limit=limit: rows[:limit]

class Collator:
    'A docstring.'
    def __init__(self, limit=8):
        self.limit = limit

    def __call__(self, rows):
        return rows[: self.limit]

class Tokenizer:
    def __init__(self, size):
        self.size = size

    def get_vocab(self):
        return {str(number): number for number in range(self.size)}

class Tokenizing(Collator):
    def __init__(self, size):
        super().__init__()
        self.tokenizer = Tokenizer(size)

pairs = {
    "closures": (closure(8), closure(9)),
    "defaults": (default(8), default(9)),
    "methods": (Collator(8).__call__, Collator(9).__call__),
    "instances": (Collator(8), Collator(9)),
    "tokenizing": (Tokenizing(8), Tokenizing(9)),
    "partials": (partial(collate, start=1), partial(collate, start=2)),
    "nested": ({"a": [Collator(8)]}, {"a": [Collator(9)]}),
    "functions": (collate, lru_cache(closure)),
}
"""


def described(folder, text=MODULE):
    """Fingerprints of the pairs of the module above, by name."""
    folder.mkdir()
    path = folder / "collators.py"
    path.write_text(text)
    spec = importlib.util.spec_from_file_location("collators", path)
    sys.modules["collators"] = module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    digests = {}
    for name, (first, second) in module.pairs.items():
        digests[name] = (digest_of(describe(first)), digest_of(describe(second)))
    return digests


def test_functions_and_objects_differ_by_their_module_and_settings(tmp_path):
    digests = described(tmp_path / "first")
    assert described(tmp_path / "second") == digests
    changed = described(tmp_path / "third", MODULE.replace("LIMIT = 8", "LIMIT = 9"))
    for name, (first, second) in digests.items():
        assert first != second
        assert changed[name][0] != first and changed[name][1] != second


def test_recursive_function_with_an_unset_name_is_described():
    def recursive(rows):
        return recursive(rows[1:]) if rows else later

    assert describe(recursive)
    later = 0


@pytest.mark.slow
def test_fingerprints_are_the_same_in_another_process(tmp_path):
    outputs = []
    for seed in ("1", "2"):
        code = "from pathlib import Path; from tests.compress.models.test_fingerprints import described\n"
        code += f"print(described(Path({str(tmp_path / seed)!r})))"
        env = {**os.environ, "PYTHONHASHSEED": seed}
        outputs.append(subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, check=True).stdout)
    assert outputs[0] == outputs[1] and len(outputs[0]) > 150


ROW = {"input_ids": [1, 2, 3], "labels": 2, "text": "x", "nested": [[1], [2, 3]], "score": 0.5, "none": None}


@pytest.mark.parametrize(
    "row",
    [
        dict(reversed(ROW.items())),
        ROW | {"input_ids": torch.tensor([1, 2, 3])},
        ROW | {"input_ids": np.array([1, 2, 3]), "labels": np.int64(2)},
    ],
    ids=["reversed", "torch", "numpy"],
)
def test_row_key_depends_on_values_only(row):
    assert row_key(row) == row_key(ROW)
    assert len(row_key(ROW)) == 16


@pytest.mark.parametrize(
    "change",
    [
        {"input_ids": [1, 2]},
        {"input_ids": [1, 2, 4]},
        {"labels": 3},
        {"text": "y"},
        {"nested": [[1, 2], [3]]},
        {"score": 0.25},
        {"none": 0},
    ],
)
def test_row_key_depends_on_every_value(change):
    assert row_key(ROW | change) != row_key(ROW)


def test_row_key_of_arrays_of_numbers():
    assert row_key({"a": [0.5, 1.5]}) == row_key({"a": torch.tensor([0.5, 1.5])})
    assert row_key({"pixels": np.zeros((2, 3))}) != row_key({"pixels": np.zeros((3, 2))})
    with pytest.raises(TypeError, match="`object`.*cache_teacher_outputs=False"):
        row_key({"input_ids": object()})


def test_functions_of_a_package_depend_on_its_version(monkeypatch):
    before = describe(CKALoss())
    assert describe([].append)
    fingerprints._version.cache_clear()
    monkeypatch.setattr("hf_mwp.__version__", "0.0.0")
    assert describe(CKALoss()) != before
    fingerprints._version.cache_clear()
