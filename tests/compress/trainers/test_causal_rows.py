"""Rows of causal language models as tokens and labels, and their batches."""

import random

import pytest
import torch
from datasets import Dataset, DatasetDict
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import DataCollatorForSeq2Seq, PreTrainedTokenizerFast

from hf_mwp.compress.models.batch_inputs import find_token_mask
from hf_mwp.compress.trainers.causal_rows import CausalCollator, tokenize_causal_rows
from hf_mwp.compress.trainers.row_packing import best_fit_decreasing
from tests.slow_parameters import slow_except
from tests.tiny_causal import CAUSAL_TYPES, tiny_causal


WORDS = ["<pad>", "<end>", "<user>", "<bot>", "<system>", "ask", "say", "one", "two", "three", "four", "?", "!"]
# <user> is 2, <bot> is 3, and each message ends with <end>, 1.
PLAIN_TEMPLATE = (
    "{% for message in messages %}"
    "{{ {'user': '<user>', 'assistant': '<bot>', 'system': '<system>'}[message['role']] }}"
    "{{ message['content'] }}<end>"
    "{% endfor %}"
    "{% if add_generation_prompt %}<bot>{% endif %}"
)
MARKED_TEMPLATE = (
    "{% for message in messages %}"
    "{% if message['role'] == 'assistant' %}<bot>{% generation %}{{ message['content'] }}<end>{% endgeneration %}"
    "{% else %}<user>{{ message['content'] }}<end>{% endif %}"
    "{% endfor %}"
    "{% if add_generation_prompt %}<bot>{% endif %}"
)
PAIR = {"prompt": "one", "completion": " two"}
QUESTION = {"role": "user", "content": "one ?"}
ANSWER = {"role": "assistant", "content": "two"}
CONVERSATION = [QUESTION, ANSWER, {"role": "user", "content": "three ?"}, {"role": "assistant", "content": "four !"}]


def word_tokenizer(template=None, **options):
    """A tokenizer of words, whose ids are their places in `WORDS`."""
    tokenizer = Tokenizer(models.WordLevel({word: index for index, word in enumerate(WORDS)}, unk_token="<pad>"))
    tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    special = {"pad_token": "<pad>", "eos_token": "<end>", "additional_special_tokens": WORDS[2:5]}
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=tokenizer, **(special | options))
    tokenizer.chat_template = template
    return tokenizer


def tokens(row, template=None, **options):
    """The token ids and labels of one row."""
    rows = tokenize_causal_rows([row], word_tokenizer(template), **options)
    assert rows.column_names == ["input_ids", "labels"]
    return rows[0]["input_ids"], rows[0]["labels"]


def test_all_tokens_of_a_text_are_learnt_and_its_end_is_added_once():
    assert tokens({"text": "one two"}) == ([7, 8, 1], [7, 8, 1])
    assert tokens({"text": "one two <end>"}) == ([7, 8, 1], [7, 8, 1])


def test_only_the_completion_of_a_prompt_is_learnt():
    row = {"prompt": "ask one ?", "completion": " two"}
    assert tokens(row) == ([5, 7, 11, 8, 1], [-100, -100, -100, 8, 1])
    assert tokens(row, completion_only_loss=False) == ([5, 7, 11, 8, 1], [5, 7, 11, 8, 1])


def test_a_token_of_prompt_and_completion_is_learnt():
    # "o" alone is unknown; with the completion it becomes one token.
    assert tokens({"prompt": "ask o", "completion": "ne two"}) == ([5, 7, 8, 1], [-100, 7, 8, 1])


@pytest.mark.parametrize("template", [PLAIN_TEMPLATE, MARKED_TEMPLATE])
def test_the_completion_of_a_conversation_is_learnt(template):
    row = {"prompt": [QUESTION], "completion": [ANSWER]}
    assert tokens(row, template) == ([2, 7, 11, 1, 3, 8, 1], [-100, -100, -100, -100, -100, 8, 1])


def test_a_message_of_the_assistant_is_continued():
    row = {"prompt": [QUESTION, {"role": "assistant", "content": "two"}], "completion": [ANSWER]}
    input_ids, labels = tokens(row, PLAIN_TEMPLATE)
    assert input_ids == [2, 7, 11, 1, 3, 8, 1, 3, 8, 1]
    # The end of the message to continue is learnt.
    assert labels == [-100] * 6 + [1, 3, 8, 1]


def test_all_marked_messages_are_learnt_or_else_the_last():
    input_ids = [2, 7, 11, 1, 3, 8, 1, 2, 9, 11, 1, 3, 10, 12, 1]
    marked = [-100] * 5 + [8, 1] + [-100] * 5 + [10, 12, 1]
    last = [-100] * 12 + [10, 12, 1]
    assert tokens({"messages": CONVERSATION}, MARKED_TEMPLATE) == (input_ids, marked)
    assert tokens({"messages": CONVERSATION}, PLAIN_TEMPLATE) == (input_ids, last)
    assert tokens({"messages": CONVERSATION}, PLAIN_TEMPLATE, completion_only_loss=False) == (input_ids, input_ids)


def test_tools_and_options_reach_the_template():
    template = "{% if tools %}{{ tools[0]['name'] }}{% endif %}{% if loud %} !{% endif %}" + PLAIN_TEMPLATE
    row = {"messages": [QUESTION, ANSWER], "tools": '[{"name": "four"}]', "chat_template_kwargs": {"loud": True}}
    input_ids, labels = tokens(row, template)
    assert input_ids == [10, 12, 2, 7, 11, 1, 3, 8, 1]
    assert labels == [-100] * 7 + [8, 1]


def test_a_prompt_that_does_not_begin_the_conversation_is_refused():
    template = "{{ messages|length }}" + PLAIN_TEMPLATE
    with pytest.raises(ValueError, match=r"Row 0\b.*`messages`.*not the beginning.*generation"):
        tokens({"messages": [QUESTION, ANSWER]}, template)
    assert tokens({"messages": [QUESTION, ANSWER]}, template, completion_only_loss=False)[0][1:] == [
        2,
        7,
        11,
        1,
        3,
        8,
        1,
    ]


@pytest.mark.parametrize(
    ("row", "labels"),
    [
        ({}, [7, 8, 9]),
        ({"labels": [-100, 8, 9]}, [-100, 8, 9]),
        ({"completion_mask": [0, 0, 1]}, [-100, -100, 9]),
        ({"assistant_masks": [0, 1, 0], "labels": [7, 8, 10]}, [-100, 8, -100]),
    ],
)
def test_tokenised_rows_pass(row, labels):
    assert tokens({"input_ids": [7, 8, 9], **row}) == ([7, 8, 9], labels)


def test_padding_of_tokenised_rows_is_removed():
    row = {"input_ids": [0, 7, 8], "labels": [-100, 7, 8], "attention_mask": [0, 1, 1]}
    assert tokens(row) == ([7, 8], [7, 8])


def test_rows_packed_by_trl_keep_their_documents():
    rows = tokenize_causal_rows([{"input_ids": [7, 8, 9, 7, 8], "seq_lengths": [3, 2]}], word_tokenizer())
    assert rows[0]["position_ids"] == [0, 1, 2, 0, 1]


def test_forms_may_be_mixed_and_the_first_is_read():
    rows = [{"text": "one two"}, {"prompt": "one", "completion": " two"}, {"input_ids": [7, 8], "text": "three four"}]
    tokenized = tokenize_causal_rows(rows, word_tokenizer())
    assert tokenized["input_ids"] == [[7, 8, 1], [7, 8, 1], [7, 8]]
    assert tokenized["labels"] == [[7, 8, 1], [-100, 8, 1], [7, 8]]


def test_splits_and_streams_are_tokenised():
    rows = Dataset.from_list([{"text": "one two", "id": 1}, {"text": "three", "id": 2}])
    splits = tokenize_causal_rows(DatasetDict(train=rows), word_tokenizer())
    assert splits["train"]["labels"] == [[7, 8, 1], [9, 1]]
    for stream in (rows.to_iterable_dataset(), rows.to_iterable_dataset().map(lambda row: row)):
        tokenized = tokenize_causal_rows(stream, word_tokenizer())
        assert list(tokenized) == list(splits["train"])
        packed = tokenize_causal_rows(stream, word_tokenizer(), max_length=5, packing=True)
        assert list(packed) == [
            {"input_ids": [7, 8, 1, 9, 1], "labels": [-100, 8, 1, -100, 1], "position_ids": [0, 1, 2, 0, 1]}
        ]


def test_longer_rows_are_truncated_only_to_a_chosen_length():
    row = {"text": "one two three four"}
    assert tokens(row, max_length=3) == ([7, 8, 9], [7, 8, 9])
    with pytest.raises(ValueError, match=r"Row 0\b.* 5 tokens.* 4 positions.*`max_length=4`"):
        tokens(row, max_positions=4)
    with pytest.raises(ValueError, match=r"Row 0\b.* 5 tokens.* 4 positions"):
        tokenize_causal_rows([row], word_tokenizer(model_max_length=4))
    with pytest.raises(ValueError, match=r"`max_length` is 5.* 4 positions"):
        tokens(row, max_length=5, max_positions=4)


@pytest.mark.parametrize(
    ("row", "options", "message"),
    [
        ({"prompt": "one"}, {}, "`prompt`, but no `completion`"),
        ({"question": "one"}, {}, "question.*`messages`.*`prompt`"),
        ({"text": 3}, {}, "`text` must be a string, got 3"),
        ({"text": "one"}, {"completion_only_loss": True}, "`completion_only_loss=True`.*`completion`"),
        ({"prompt": "one", "completion": ""}, {}, "`completion` is empty"),
        ({"prompt": "one", "completion": [ANSWER]}, {}, "two strings or two lists.*`prompt`"),
        ({"prompt": [], "completion": [ANSWER]}, {}, r"got \[\] as `prompt`"),
        ({"messages": [QUESTION, ANSWER]}, {"template": None}, "no chat template"),
        ({"prompt": [QUESTION], "completion": [ANSWER]}, {"template": None}, "no chat template"),
        ({"messages": [ANSWER, QUESTION]}, {}, "'user'.*must be the last"),
        ({"messages": []}, {}, r"`messages`.*got \[\]"),
        ({"messages": [{"role": "user"}]}, {}, "`messages`.*`content`"),
        ({"messages": [QUESTION]}, {"template": MARKED_TEMPLATE}, "labels are -100"),
        ({"messages": [ANSWER]}, {"template": "{{ raise_exception('no such role') }}"}, "no such role"),
        ({"prompt": "one two three", "completion": " four"}, {"max_length": 3}, "labels are -100.*`max_length`"),
        ({"input_ids": [7, 8], "labels": [-100, -100]}, {}, "labels are -100"),
        ({"input_ids": [7, 8], "labels": [7]}, {}, "2 `input_ids`, but `labels` has 1"),
        ({"input_ids": [7, 8], "seq_lengths": [2]}, {"packing": True, "max_length": 4}, "already packed"),
        ({"input_ids": [7]}, {}, "only one token"),
    ],
)
def test_wrong_rows_are_named(row, options, message):
    options = {"template": PLAIN_TEMPLATE} | options
    tokenizer = word_tokenizer(options.pop("template"))
    with pytest.raises(ValueError, match=rf"(?s)Row 1: .*{message}"):
        tokenize_causal_rows([{"input_ids": [7, 8]}, row], tokenizer, **options)


def test_wrong_arguments_are_named():
    tokenizer = word_tokenizer()
    with pytest.raises(ValueError, match="no rows"):
        tokenize_causal_rows([], tokenizer)
    with pytest.raises(ValueError, match="`max_length`.* at least 1.* 0"):
        tokenize_causal_rows([PAIR], tokenizer, max_length=0)
    with pytest.raises(ValueError, match="`packing=True`.*`max_length`"):
        tokenize_causal_rows([PAIR], tokenizer, packing=True)
    with pytest.raises(TypeError, match="`tokenizer`"):
        tokenize_causal_rows([PAIR], "gpt2")
    tokenizer.pad_token = None
    tokenizer.eos_token = None
    with pytest.raises(ValueError, match="no padding token"):
        CausalCollator(tokenizer)


@settings(deadline=None)
@given(st.lists(st.integers(1, 10), max_size=30))
def test_packed_rows_have_each_row_once_and_no_two_fit_together(lengths):
    groups = best_fit_decreasing(lengths, 10)
    assert sorted(index for group in groups for index in group) == list(range(len(lengths)))
    sizes = sorted(sum(lengths[index] for index in group) for group in groups)
    assert not sizes or sizes[-1] <= 10
    assert len(sizes) < 2 or sizes[0] + sizes[1] > 10


@pytest.mark.parametrize("side", ["left", "right"])
def test_batches_are_padded_on_the_side_of_the_tokenizer(side):
    tokenizer = word_tokenizer(padding_side=side)
    rows = [{"input_ids": [7, 8, 9], "labels": [-100, 8, 9]}, {"input_ids": [7, 8]}]
    batch = CausalCollator(tokenizer)(rows)
    expected = {
        "right": {
            "input_ids": [[7, 8, 9], [7, 8, 0]],
            "labels": [[-100, 8, 9], [7, 8, -100]],
            "attention_mask": [[1, 1, 1], [1, 1, 0]],
        },
        "left": {
            "input_ids": [[7, 8, 9], [0, 7, 8]],
            "labels": [[-100, 8, 9], [-100, 7, 8]],
            "attention_mask": [[1, 1, 1], [0, 1, 1]],
            "position_ids": [[0, 1, 2], [0, 0, 1]],
        },
    }
    assert {name: values.tolist() for name, values in batch.items()} == expected[side]
    assert torch.equal(find_token_mask(batch), batch["attention_mask"])
    longer = CausalCollator(tokenizer, pad_to_multiple_of=4)(rows)
    assert longer["input_ids"].shape == (2, 4)


def test_batches_equal_those_of_transformers():
    tokenizer = word_tokenizer()
    rows = [{"input_ids": [7, 8, 9], "labels": [-100, 8, 9]}, {"input_ids": [7, 8], "labels": [7, 8]}]
    expected = DataCollatorForSeq2Seq(tokenizer)([dict(row) for row in rows])
    batch = CausalCollator(tokenizer)(rows)
    assert batch.keys() == expected.keys()
    for name, values in batch.items():
        assert torch.equal(values, expected[name])


@pytest.mark.parametrize("side", ["left", "right"])
def test_packed_batches_restart_positions(side):
    rows = [
        {"input_ids": [7, 8, 9, 7, 8], "labels": [7, 8, 9, 7, 8], "position_ids": [0, 1, 2, 0, 1]},
        {"input_ids": torch.tensor([8, 9])},
    ]
    batch = CausalCollator(word_tokenizer(padding_side=side))(rows)
    is_left = side == "left"
    assert batch.keys() == {"input_ids", "labels", "position_ids", "use_cache"}
    assert batch["use_cache"] is False
    assert batch["position_ids"].tolist() == [[0, 1, 2, 0, 1], [0, 0, 0, 0, 1] if is_left else [0, 1, 0, 0, 0]]
    second_labels = [-100, -100, -100, -100, 9] if is_left else [-100, 9, -100, -100, -100]
    assert batch["labels"].tolist() == [[-100, 8, 9, -100, 8], second_labels]
    second_tokens = [False] * 3 + [True] * 2 if is_left else [True] * 2 + [False] * 3
    assert find_token_mask(batch).tolist() == [[True] * 5, second_tokens]
    joined = CausalCollator(word_tokenizer(), padding_free=True)(rows)
    assert joined["input_ids"].tolist() == [[7, 8, 9, 7, 8, 8, 9]]
    assert joined["position_ids"].tolist() == [[0, 1, 2, 0, 1, 0, 1]]
    assert find_token_mask(joined).all()


def random_rows(count=7):
    chooser = random.Random(0)
    rows = []
    for _ in range(count):
        input_ids = [chooser.randrange(5, len(WORDS)) for _ in range(chooser.randrange(2, 12))]
        rows.append({"input_ids": input_ids, "labels": [-100, *input_ids[1:]]})
    return rows


def losses_of_tokens(model, batch):
    """The losses of the labels, which are shifted, for each token and position in documents."""
    outputs = model(**{name: values for name, values in batch.items() if name != "labels"})
    labels = batch["labels"][:, 1:]
    is_learnt = labels != -100
    logits = outputs.logits[:, :-1][is_learnt].double()
    return torch.nn.functional.cross_entropy(logits, labels[is_learnt], reduction="none").sort().values


@pytest.mark.parametrize("attention", ["sdpa", "eager"])
@pytest.mark.parametrize("model_type", slow_except(CAUSAL_TYPES, "llama", "gpt2"))
@torch.no_grad()
def test_padded_and_packed_documents_are_as_documents_alone(model_type, attention):
    if (model_type, attention) == ("gemma2", "sdpa"):
        pytest.skip("Gemma 2 has no fused attention.")
    model = tiny_causal(model_type)
    model.set_attn_implementation(attention)
    rows = random_rows()
    tokenizer = word_tokenizer()
    collate = CausalCollator(tokenizer)
    alone = torch.cat([losses_of_tokens(model, collate([row])) for row in rows]).sort().values
    packed = tokenize_causal_rows(rows, tokenizer, max_length=20, packing=True)
    assert len(packed) < len(rows)
    batches = {
        "right": collate(rows),
        "left": CausalCollator(word_tokenizer(padding_side="left"))(rows),
        "packed": collate(list(packed)),
        "joined": CausalCollator(tokenizer, padding_free=True)(rows),
    }
    assert batches["packed"]["input_ids"].shape[0] > 1
    for name, batch in batches.items():
        assert torch.allclose(losses_of_tokens(model, batch), alone, atol=1e-5), name
