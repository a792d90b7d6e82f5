"""Tagged texts and students for the tests of pretraining."""

from __future__ import annotations

import re

import torch

from hf_mwp.compress.models import MwpStudentConfig, MwpStudentForPreTraining
from hf_mwp.runtime.problems import TaggedWord
from hf_mwp.solver.batches.mwp_processor import MwpProcessor
from hf_mwp.solver.corpus import pos_label_list
from tests.tiny import tiny_problems, tiny_tokenizer


TAGS = ("m", "n", "q", "v", "x")
WORDS = {"苹果": "n", "小明": "n", "一共": "d", "平均": "v", "有": "v", "买": "v", "吃": "v", "分": "v"}
WORDS |= {"个": "q", "盒": "q", "，": "x", "？": "x"}


def tag(text: str) -> list[TaggedWord]:
    """Words from a small list, numbers, and single characters; tags of jieba's kind."""
    words = []
    for match in re.finditer("|".join([r"\d+", *WORDS, "."]), text, re.DOTALL):
        word = match[0]
        label = "m" if word.isdigit() else WORDS.get(word, "n")
        if label not in TAGS:
            label = "n"
        words.append(TaggedWord(word, label, *match.span()))
    return words


def tiny_texts(count: int = 40, seed: int = 0) -> list[str]:
    """Texts of problems; those that differ in their numbers alone are made different by a name."""
    texts = []
    for index, problem in enumerate(tiny_problems(count, seed)):
        texts.append(problem.text.replace("小明", "小明" * (1 + index // 6)))
    return texts


def tiny_pairs(count: int = 40, seed: int = 0) -> list[tuple[str, list[TaggedWord]]]:
    """The same with their tagged words."""
    return [(text, tag(text)) for text in tiny_texts(count, seed)]


def quantity_pairs(count: int = 40, seed: int = 0) -> list[tuple[str, list[TaggedWord]]]:
    """The same; apples are quantities, as measure words are keywords and masked for that already."""
    pairs = tiny_pairs(count, seed)
    for _, words in pairs:
        for index, word in enumerate(words):
            if word.word == "苹果":
                words[index] = TaggedWord(word.word, "q", word.start, word.end)
    return pairs


def text_processor(**fields) -> MwpProcessor:
    """A processor without constants, as pretraining has it."""
    return MwpProcessor(tiny_tokenizer(), **({"max_length": 64} | fields))


def tiny_student(
    processor: MwpProcessor, seed: int = 0, model_class=MwpStudentForPreTraining, **fields
) -> MwpStudentForPreTraining:
    """A student of some thousand weights."""
    torch.manual_seed(seed)
    sizes = {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 24}
    sizes |= {"max_position_embeddings": 64, "hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0}
    labels = {"pos_labels": pos_label_list(TAGS), "pos_tagger": "jieba"}
    sizes["vocab_size"] = len(processor.tokenizer)
    return model_class(MwpStudentConfig(**(sizes | labels | fields)))
