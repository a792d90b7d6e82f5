"""Tiny models with heads other than classifiers of texts, and rows for them."""

import random
from dataclasses import dataclass

import torch
from torch import nn
from transformers import (
    AlbertConfig,
    AlbertForPreTraining,
    BertForMultipleChoice,
    BertForNextSentencePrediction,
    BertForPreTraining,
    BertForQuestionAnswering,
    BertForTokenClassification,
    DistilBertConfig,
    DistilBertForQuestionAnswering,
    ElectraConfig,
    ElectraForPreTraining,
)

from hf_mwp.compress.models import (
    MwpStudentConfig,
    MwpStudentForMultipleChoice,
    MwpStudentForQuestionAnswering,
    MwpStudentForTokenClassification,
)
from hf_mwp.compress.trainers.multiple_choice_training_rules import MultipleChoiceCollator
from tests.compress.trainers.distilling import masked_lm_rows, pad, without_labels
from tests.tiny import tiny_bert_config, tiny_classifier_rows, tiny_tokenizer


@dataclass(frozen=True)
class Task:
    """Models and rows of a head: `make(width, layers, seed)` returns a model."""

    make: object
    rows: object
    collate: object
    labels: tuple = ("labels",)


def bert(model_class, **fields):
    def make(width=16, layers=2, seed=0):
        torch.manual_seed(seed)
        sizes = {"hidden_size": width, "num_hidden_layers": layers, "initializer_range": 0.3}
        return model_class(tiny_bert_config(**(sizes | fields)))

    return make


def student(model_class, **fields):
    def make(width=16, layers=2, seed=0):
        torch.manual_seed(seed)
        sizes = {"vocab_size": 40, "hidden_size": width, "num_hidden_layers": layers, "num_attention_heads": 2}
        sizes |= {"intermediate_size": 24, "max_position_embeddings": 32, "initializer_range": 0.3}
        dropouts = {"hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0}
        return model_class(MwpStudentConfig(**(sizes | dropouts | fields)))

    return make


def distilbert(width=16, layers=2, seed=0):
    torch.manual_seed(seed)
    sizes = {"dim": width, "n_layers": layers, "n_heads": 2, "hidden_dim": 16, "vocab_size": 40}
    dropouts = {"dropout": 0.0, "attention_dropout": 0.0, "qa_dropout": 0.0}
    return DistilBertForQuestionAnswering(DistilBertConfig(**sizes, **dropouts, initializer_range=0.3))


def electra(width=16, layers=2, seed=0):
    torch.manual_seed(seed)
    fields = tiny_bert_config(hidden_size=width, num_hidden_layers=layers, initializer_range=0.3).to_dict()
    del fields["model_type"]
    return ElectraForPreTraining(ElectraConfig(**fields, embedding_size=width))


def albert(width=16, layers=2, seed=0):
    torch.manual_seed(seed)
    sizes = {"vocab_size": 40, "hidden_size": width, "num_hidden_layers": layers, "embedding_size": 8}
    sizes |= {"num_attention_heads": 2, "intermediate_size": 24, "initializer_range": 0.3}
    dropouts = dict.fromkeys(("hidden_dropout_prob", "attention_probs_dropout_prob", "classifier_dropout_prob"), 0.0)
    return AlbertForPreTraining(AlbertConfig(**sizes, **dropouts))


def question_rows(count=16):
    rows = []
    for index, row in enumerate(tiny_classifier_rows(count)):
        length = len(row["input_ids"])
        start = index % length
        positions = {"start_positions": start, "end_positions": min(start + 1, length - 1)}
        rows.append(without_labels([row])[0] | positions)
    return rows


def choice_rows(count=16):
    chooser = random.Random(3)
    rows = []
    for index in range(count):
        choices = tiny_classifier_rows(3, seed=index)
        row = {name: [choice[name] for choice in choices] for name in ("input_ids", "attention_mask")}
        rows.append(row | {"labels": chooser.randrange(3)})
    return rows


def pair_rows(label):
    def rows(count=16):
        pairs = masked_lm_rows(count)
        for index, row in enumerate(pairs):
            row[label] = index % 2
        return pairs

    return rows


def replaced_rows(count=16):
    rows = tiny_classifier_rows(count)
    for row in rows:
        row["labels"] = [token % 2 for token in row["input_ids"]]
    return rows


def pad_all(rows):
    """A batch whose other columns have a number for each row."""
    batch = pad(rows)
    for name in rows[0].keys() - batch.keys():
        batch[name] = torch.tensor([row[name] for row in rows])
    return batch


def pad_left(rows):
    """A batch padded on the left to twelve tokens; positions of answers move with their tokens."""
    moved = []
    for row in rows:
        shift = 12 - len(row["input_ids"])
        row = {name: value + shift if name.endswith("positions") else value for name, value in row.items()}
        for name in ("input_ids", "attention_mask"):
            row[name] = [0] * shift + row[name]
        moved.append(row)
    return pad_all(moved)


POSITIONS = ("start_positions", "end_positions")
choices = MultipleChoiceCollator(tiny_tokenizer())
TASKS = {
    "answers": Task(bert(BertForQuestionAnswering), question_rows, pad_all, POSITIONS),
    "answers, padded left": Task(bert(BertForQuestionAnswering), question_rows, pad_left, POSITIONS),
    "answers of a student": Task(student(MwpStudentForQuestionAnswering), question_rows, pad_all, POSITIONS),
    "answers of DistilBERT": Task(distilbert, question_rows, pad_all, POSITIONS),
    "choices": Task(bert(BertForMultipleChoice), choice_rows, choices),
    "choices of a student": Task(student(MwpStudentForMultipleChoice), choice_rows, choices),
    "tokens": Task(bert(BertForTokenClassification, num_labels=40), masked_lm_rows, pad),
    "tokens of a student": Task(student(MwpStudentForTokenClassification, num_labels=40), masked_lm_rows, pad),
    "next sentence": Task(bert(BertForNextSentencePrediction), lambda count=16: two_classes(count), pad),
    "pretraining": Task(
        bert(BertForPreTraining), pair_rows("next_sentence_label"), pad_all, ("labels", "next_sentence_label")
    ),
    "pretraining of ALBERT": Task(
        albert, pair_rows("sentence_order_label"), pad_all, ("labels", "sentence_order_label")
    ),
    "replaced tokens": Task(electra, replaced_rows, pad),
}


def two_classes(count=16):
    rows = tiny_classifier_rows(count)
    for row in rows:
        row["labels"] %= 2
    return rows


def divergence(teacher_scores, student_scores):
    """The Kullback-Leibler divergence of one distribution."""
    teacher_log = nn.functional.log_softmax(teacher_scores, -1)
    student_log = nn.functional.log_softmax(student_scores, -1)
    return (teacher_log.exp() * (teacher_log - student_log)).sum()
