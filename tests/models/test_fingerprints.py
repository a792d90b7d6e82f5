import copy
import os
import subprocess
import sys
from functools import partial

import numpy as np
import pytest
import torch
from transformers import BertJapaneseTokenizer, BertTokenizer, DataCollatorForLanguageModeling, DataCollatorWithPadding

from hf_mwp.data.batches.mwp_collator import MwpCollator
from hf_mwp.models.fingerprints import (
    describe,
    hash_model,
    hash_processing,
    row_key,
)
from hf_mwp.store.finished_folder import digest_of
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

    def one(rows, length=1):
        return rows

    def other(rows, length=1):
        return rows[:length]

    assert describe(one) != describe(other)
    assert describe(partial(other, length=1)) != describe(partial(other, length=2))


FUNCTIONS = """
'Module docstring.'
import torch
from functools import lru_cache, partial

LIMIT, CONFIG = 8, {"limit": 8}

def cut(rows):
    return rows[:8]

def collate(rows, start=0, *, step=1):
    rows = [row for row in rows if row not in {"a", "b", "c", 0.5, None, b"d"}]
    return torch.tensor(cut(rows[:LIMIT][: CONFIG["limit"]])[:8:])

def make(limit):
    mask = torch.tensor([limit, 1])
    return lambda rows: rows[:limit] * mask

class Collator:
    def __init__(self, limit=8):
        self.limit = limit

    def __call__(self, rows):
        return self.shorten(rows)

    def shorten(self, rows):
        return rows[: self.limit]

    @staticmethod
    def count(rows):
        return len(rows[:8])

base = Collator()

def wrapper(rows):
    return base(rows)

made, method, instance = make(8), Collator(8).shorten, Collator(8)

def nested(rows):
    class Cut:
        'Class docstring.'

        def __call__(self, rows):
            'Method docstring.'
            return rows[:8] or "Method docstring?"

    def inner(rows):
        'Inner docstring.'
        return Cut()(rows)

    return inner(rows)

class Documented:
    'Outer docstring.'

    def __call__(self, rows):
        'Call docstring.'
        return nested(rows)

documented = Documented()

class Tokenizer:
    def get_vocab(self):
        return {"a": 0}

class Tokenizing(Collator):
    tokenizer = Tokenizer()

    def __call__(self, rows):
        return super().__call__(rows[:8])

tokenizing = Tokenizing()
given, cached = partial(cut, tokenizer=tokenizing.tokenizer), lru_cache(lambda rows: rows[:8])
"""


def described(name, old=None, new=None):
    """The fingerprint of something in the module above, with one change to its text."""
    assert old is None or old in FUNCTIONS
    module = {"__name__": "collators"}
    exec(FUNCTIONS if old is None else FUNCTIONS.replace(old, new), module)
    return digest_of({"collator": describe(module[name])})


@pytest.mark.parametrize(
    ("name", "old", "new"),
    [
        ("collate", ")[:8:])", ")[:9:])"),
        ("collate", "torch.tensor(cut", "torch.asarray(cut"),
        ("collate", "0.5, None", "0.25, None"),
        ("collate", "start=0", "start=1"),
        ("collate", "step=1", "step=2"),
        ("collate", "LIMIT, CONFIG = 8", "LIMIT, CONFIG = 9"),
        ("collate", '{"limit": 8}', '{"limit": 9}'),
        ("collate", "return rows[:8]", "return rows[:9]"),
        ("made", "make(8)", "make(9)"),
        ("made", "[limit, 1]", "[limit, 0]"),
        ("made", "lambda rows: rows[:limit]", "lambda rows: rows[limit:]"),
        ("method", "Collator(8).shorten", "Collator(9).shorten"),
        ("instance", "instance = make(8), Collator(8).shorten, Collator(8)", "instance = 0, 0, Collator(9)"),
        ("instance", "rows[: self.limit]", "rows[self.limit :]"),
        ("instance", "len(rows[:8])", "len(rows[:9])"),
        ("tokenizing", "__call__(rows[:8])", "__call__(rows[:9])"),
        ("tokenizing", "rows[: self.limit]", "rows[self.limit :]"),
        ("tokenizing", '"a": 0', '"a": 1'),
        ("given", '"a": 0', '"a": 1'),
        ("given", "return rows[:8]", "return rows[:9]"),
        ("cached", "lambda rows: rows[:8]", "lambda rows: rows[:9]"),
        ("wrapper", "base = Collator()", "base = Collator(9)"),
        ("wrapper", "self.shorten(rows)", "self.shorten(rows)[:4]"),
    ],
)
def test_functions_are_told_apart_by_their_constants_and_what_they_call(name, old, new):
    assert described(name) == described(name)
    assert described(name, old, new) != described(name)


@pytest.mark.parametrize("kind", ["Module", "Class", "Method", "Inner", "Outer", "Call"])
def test_docstrings_are_left_out(kind):
    old = f"'{kind} docstring.'"
    for name in ("nested", "documented"):
        known = described(name)
        assert described(name, old, "'Reworded.'") == known
        if kind != "Module":
            assert described(name, old, "") == known
    for old, new in (("rows[:8] or", "rows[:9] or"), ('"Method docstring?"', '"Other constant"')):
        assert described("documented", old, new) != described("documented")


def test_a_constant_that_equals_the_docstring_is_kept():
    one, other = ({}, {})
    exec("def f():\n    'a'\n    return 'a'", one)
    exec("def f():\n    'a'\n    return 'b'", other)
    assert describe(one["f"]) != describe(other["f"])


def test_what_does_not_matter_to_a_function_is_left_out():
    assert described("collate", "base = Collator()", "base = Collator(9)") == described("collate")

    def one(rows):
        return one(rows[1:]) if rows else later

    def two(rows):
        return calls and rows

    calls = [two]
    before = describe(two)
    for _ in range(100):  # the interpreter rewrites the code of what is called often
        two([])
    assert describe(two) == before
    assert describe(one)  # calls itself, and names something that is not there
    later = 0


@pytest.mark.slow
def test_functions_are_the_same_in_another_process():
    code = "from tests.models.test_fingerprints import described\n"
    code += "print([described(name) for name in ('collate', 'made', 'method', 'instance', 'tokenizing', 'wrapper')])"
    run = [
        subprocess.run(
            [sys.executable, "-c", code], env={**os.environ, "PYTHONHASHSEED": seed}, capture_output=True, check=True
        ).stdout
        for seed in ("1", "2")
    ]
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
