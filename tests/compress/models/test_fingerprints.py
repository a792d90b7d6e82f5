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


def test_tokenizers_of_one_vocabulary_are_told_apart_by_what_they_do(tmp_path):
    tokens = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "a", "A", "b"]
    vocabulary = {token: index for index, token in enumerate(tokens)}
    fast = [BertTokenizer(vocab=vocabulary, do_lower_case=lower) for lower in (True, False, True)]
    assert [each("A b")["input_ids"] for each in fast] == [[2, 5, 7, 3], [2, 6, 7, 3], [2, 5, 7, 3]]
    (tmp_path / "vocab.txt").write_text("\n".join(tokens))
    slow = [
        BertJapaneseTokenizer(tmp_path / "vocab.txt", do_lower_case=lower, word_tokenizer_type="basic")
        for lower in (True, False, True)
    ]
    for tokenizers in (fast, slow):
        first, other, same = map(hash_processing, tokenizers)
        assert first == same != other
        first, other, same = (describe(DataCollatorWithPadding(each)) for each in tokenizers)
        assert first == same != other


def test_collators_are_told_apart_by_what_they_do():
    tokenizer = tiny_tokenizer()
    padding = [DataCollatorWithPadding(tokenizer, pad_to_multiple_of=n) for n in (8, 16, 8)]
    known = [digest_of({"collator": describe(each)}) for each in padding]
    assert known[0] == known[2] != known[1]
    masking = [DataCollatorForLanguageModeling(tokenizer, mlm_probability=p) for p in (0.15, 0.2)]
    assert describe(masking[0]) != describe(masking[1])
    assert describe(MwpCollator(tiny_processor())) != describe(MwpCollator(tiny_processor(indexed_numbers=True)))


FUNCTIONS = """
'A docstring.'
from functools import lru_cache, partial

LIMIT = 8

def collate(rows, start=0):
    'A docstring.'
    return rows[start:LIMIT]

def make(limit):
    return lambda rows: rows[:limit]

def give(limit):
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

made = [make(8), make(9)]
given = [give(8), give(9)]
methods = [Collator(8).__call__, Collator(9).__call__]
instances = [Collator(8), Collator(9)]
tokenizing = [Tokenizing(8), Tokenizing(9)]
partials = [partial(collate, start=1), partial(collate, start=2)]
nested = [{"each": [Collator(8)]}, {"each": [Collator(9)]}]
functions = [collate, lru_cache(make)]
"""
NAMES = ("made", "given", "methods", "instances", "tokenizing", "partials", "nested", "functions")


def described(folder, old="", new=""):
    """Fingerprints of what stands in the module above, with one change to its text."""
    assert old in FUNCTIONS
    folder.mkdir()
    path = folder / "collators.py"
    path.write_text(FUNCTIONS.replace(old, new) if old else FUNCTIONS)
    spec = importlib.util.spec_from_file_location("collators", path)
    sys.modules["collators"] = module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return {name: [digest_of(describe(each)) for each in getattr(module, name)] for name in NAMES}


def test_functions_and_objects_are_told_apart_by_their_module_and_settings(tmp_path):
    known = described(tmp_path / "one")
    assert described(tmp_path / "two") == known
    assert all(first != second for first, second in known.values())
    other = described(tmp_path / "three", "LIMIT = 8", "LIMIT = 9")
    assert all(ours != theirs for name in NAMES for ours, theirs in zip(known[name], other[name], strict=True))


def test_what_does_not_matter_to_a_function_is_left_out():
    def one(rows):
        return one(rows[1:]) if rows else later

    assert describe(one)  # calls itself, and names something that is not there
    later = 0


def test_objectives_are_told_apart_by_their_losses():
    known, other, same = (digest_of(describe(HiddenStates(CKALoss(squared=each)))) for each in (True, False, True))
    assert known == same != other


@pytest.mark.slow
def test_functions_are_the_same_in_another_process(tmp_path):
    run = []
    for seed in ("1", "2"):
        code = "from pathlib import Path; from tests.compress.models.test_fingerprints import described\n"
        code += f"print(described(Path({str(tmp_path / seed)!r})))"
        env = {**os.environ, "PYTHONHASHSEED": seed}
        run.append(subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, check=True).stdout)
    assert run[0] == run[1] and len(run[0]) > 150


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
    assert isinstance(known, bytes) and len(known) == 16
    assert row_key({"a": [0.5, 1.5]}) == row_key({"a": torch.tensor([0.5, 1.5])})
    assert row_key({"pixels": np.zeros((2, 3))}) != row_key({"pixels": np.zeros((3, 2))})
    with pytest.raises(TypeError, match="`object`.*cache_teacher_outputs=False"):
        row_key({"input_ids": object()})


def test_gates_in_buffers_are_part_of_a_model():
    """Those in buffers that are not saved as well; what a hook holds for itself is not seen."""
    model = tiny_classifier()
    model.register_buffer("head_gates", torch.ones(2, 2), persistent=False)
    model.register_forward_hook(lambda module, args, output: None)
    before = hash_model(model)
    assert "head_gates" not in model.state_dict() and hash_model(model) == before
    model.head_gates[1, 0] = 0.0
    assert hash_model(model) != before


def test_functions_of_a_package_are_told_apart_by_its_version(monkeypatch):
    before = describe(CKALoss())
    assert describe([].append)
    fingerprints._version.cache_clear()
    monkeypatch.setattr("hf_mwp.__version__", "0.0.0")
    assert describe(CKALoss()) != before
    fingerprints._version.cache_clear()
