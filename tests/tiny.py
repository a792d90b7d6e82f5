"""Tiny problems, tokenizers and models for tests, made from configs: no downloads, the same on each run."""

from __future__ import annotations

import copy
import functools
import random

import torch
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors
from transformers import (
    BertConfig,
    BertForMaskedLM,
    BertForSequenceClassification,
    Gemma3TextConfig,
    PreTrainedTokenizerFast,
)

from hf_mwp.compress.models import MwpStudentConfig
from hf_mwp.runtime.problems import MaskedText, MathWordProblem
from hf_mwp.solver.batches.mwp_processor import MwpProcessor
from hf_mwp.solver.models import AthenaModel, GTSConfig, MwpSolver, MwpSolverConfig


TEMPLATES = [
    ("小明有{a}个苹果，又买了{b}个，一共有几个？", "x={a}+{b}"),
    ("小明有{a}个苹果，吃了{b}个，还有几个？", "x={a}-{b}"),
    ("每盒{a}个苹果，{b}盒一共有几个？", "x={a}*{b}"),
    ("把{a}个苹果平均分给{b}人，每人几个？", "x={a}/{b}"),
    ("小明有{a}个苹果，又买了{b}盒，每盒{c}个，一共有几个？", "x={a}+{b}*{c}"),
    ("小明有{a}个苹果，又买了{b}个，平均分给{c}人和小明，每人几个？", "x=({a}+{b})/({c}+1)"),
]


def tiny_rows(count: int = 24, seed: int = 0) -> list[dict]:
    """Rows as `load_mwp_dataset` gives them, of six templates in turn; numbers of a problem differ from each other."""
    return [{**row} for row in _rows(count, seed)]


@functools.cache
def _rows(count: int, seed: int) -> list[dict]:
    chooser = random.Random(seed)
    rows = []
    for index in range(count):
        text, equation = TEMPLATES[index % len(TEMPLATES)]
        numbers = dict(zip("abc", chooser.sample(range(2, 60), 3), strict=True))
        problem = MathWordProblem(text.format(**numbers), equation.format(**numbers))
        row = {"id": f"tiny-{index}", "text": problem.text, "equation": problem.equation, "language": "zh"}
        row["answer"] = str(problem.expression.evaluate(problem.numbers))
        rows.append({**row, "dataset": "tiny", "fold": -1, "line": index + 1})
    return rows


def tiny_problems(count: int = 24, seed: int = 0) -> list[MathWordProblem]:
    """The same rows as problems."""
    return [*_problems(count, seed)]


@functools.cache
def _problems(count: int, seed: int) -> list[MathWordProblem]:
    return [MathWordProblem(row["text"], row["equation"], row["answer"], row["id"]) for row in _rows(count, seed)]


def tiny_dataset(count: int = 24, seed: int = 0):
    """The same rows as a `datasets.Dataset`."""
    from datasets import Dataset

    return Dataset.from_list(tiny_rows(count, seed))


def tiny_tokenizer() -> PreTrainedTokenizerFast:
    """A BERT-like tokenizer for the characters of the templates."""
    text = "".join(template for template, _ in TEMPLATES)
    characters = sorted(set(text) - set("{}abc"))
    tokens = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *characters]
    tokenizer = Tokenizer(models.WordPiece({token: i for i, token in enumerate(tokens)}, unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer(handle_chinese_chars=True)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", pair="[CLS] $A [SEP] $B:1 [SEP]:1", special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
    )
    names = ("pad_token", "unk_token", "cls_token", "sep_token", "mask_token")
    special_tokens = dict(zip(names, tokens[:5], strict=True))
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, **special_tokens)


def tiny_processor(**kwargs) -> MwpProcessor:
    """A processor whose vocabulary has the constant 1 besides the operators."""
    return copy.deepcopy(_processor(**kwargs))


@functools.cache
def _processor(**kwargs) -> MwpProcessor:
    return MwpProcessor.build(tiny_tokenizer(), tiny_problems(30), min_constant_count=5, **kwargs)


def tiny_gemma_config(vocab_size: int, **fields) -> Gemma3TextConfig:
    """The configuration of a Gemma of two layers, whose attention sees the left side unless `fields` say otherwise."""
    sizes = {"hidden_size": 16, "intermediate_size": 24, "num_hidden_layers": 2}
    heads = {"num_attention_heads": 2, "num_key_value_heads": 1, "head_dim": 8}
    return Gemma3TextConfig(vocab_size=vocab_size, **sizes, **heads, **fields)


def tiny_solver(
    processor: MwpProcessor, layers: int = 2, hidden_size: int = 16, dropout: float = 0.0, seed: int = 0, **fields
) -> MwpSolver:
    """A solver of some thousand random weights; `fields` are those of its config."""
    torch.manual_seed(seed)
    encoder = MwpStudentConfig(
        vocab_size=len(processor.tokenizer),
        hidden_size=hidden_size,
        num_hidden_layers=layers,
        num_attention_heads=2,
        intermediate_size=24,
        max_position_embeddings=64,
        hidden_dropout_prob=dropout,
        attention_probs_dropout_prob=dropout,
    )
    vocabulary = processor.vocabulary
    decoder = GTSConfig(
        hidden_size=hidden_size,
        operator_embedding_size=8,
        operators=vocabulary.operators,
        constants=vocabulary.constants,
        dropout=dropout,
        max_length=9,
    )
    return MwpSolver(MwpSolverConfig(encoder_config=encoder, decoder_config=decoder, **fields))


def tiny_bert_config(**fields) -> BertConfig:
    """A BERT of two layers and width 16."""
    sizes = {"vocab_size": 40, "hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2}
    sizes |= {"intermediate_size": 24, "max_position_embeddings": 32}
    dropouts = {"hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0}
    return BertConfig(**(sizes | dropouts | fields))


def tiny_classifier(seed: int = 0, **fields) -> BertForSequenceClassification:
    """A classifier of three classes."""
    torch.manual_seed(seed)
    return BertForSequenceClassification(tiny_bert_config(**({"num_labels": 3} | fields)))


def tiny_masked_lm(seed: int = 0, **fields) -> BertForMaskedLM:
    """A masked language model."""
    torch.manual_seed(seed)
    return BertForMaskedLM(tiny_bert_config(**fields))


def tiny_classifier_rows(count: int = 16, seed: int = 0, vocab_size: int = 40) -> list[dict]:
    """Encoded sequences of different length with labels 0, 1, 2."""
    chooser = random.Random(seed)
    rows = []
    for _ in range(count):
        ids = [chooser.randrange(5, vocab_size) for _ in range(chooser.randint(3, 12))]
        rows.append({"input_ids": ids, "attention_mask": [1] * len(ids), "labels": chooser.randrange(3)})
    return rows


def tiny_athena_solver(
    processor: MwpProcessor, layers: int = 2, hidden_size: int = 16, dropout: float = 0.0, seed: int = 0, **fields
) -> MwpSolver:
    """A solver that judges candidates; the processor gets its symbols and columns. `fields` are of its config."""
    torch.manual_seed(seed)
    encoder = tiny_solver(processor, layers, hidden_size, dropout, seed).encoder
    # Of the constants only those that were counted are thoughts, also for a second solver of the same processor.
    fields = {"dropout": dropout, "max_length": 9, "max_thoughts": 12, "initial_constants": ["1"]} | fields
    return MwpSolver.from_encoder_decoder_pretrained(encoder, processor, AthenaModel, decoder_kwargs=fields)


def rebuilt(masked: MaskedText) -> str:
    """The text whose numbers are masked."""
    text = masked.segments[0]
    for mention, segment in zip(masked.mentions, masked.segments[1:], strict=True):
        text += mention.text + segment
    return text
