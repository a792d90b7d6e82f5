"""Perplexity, accuracy of generated equations, and the divergence from the most likely tokens of a teacher."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from hf_mwp.compress.distillation.top_classes import TopClasses
from hf_mwp.compress.losses import LogitDistillationLoss
from hf_mwp.compress.metrics.efficiency import count_parameters
from hf_mwp.compress.trainers.causal_rows import CausalCollator, tokenize_causal_rows
from hf_mwp.runtime.expressions import Expression, ExpressionError
from hf_mwp.solver.metrics import answers_match

from .texts import full_text


BATCH_SIZE = 64
MAX_EQUATION_TOKENS = 40
IGNORED = -100


@torch.inference_mode()
def text_losses(
    model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase, texts: Sequence[str]
) -> list[tuple[float, int]]:
    """Return the negative log-likelihood of each text and the number of its predicted tokens."""
    losses: list[tuple[float, int]] = [(0.0, 0)] * len(texts)
    for indices, batch in _batches(tokenizer, texts):
        labels = _next_tokens(batch)
        logits = model(input_ids=batch["input_ids"], attention_mask=batch["attention_mask"]).logits
        token_losses = cross_entropy(logits.float().transpose(1, 2), labels, reduction="none", ignore_index=IGNORED)
        sums = token_losses.sum(1).tolist()
        lengths = (labels != IGNORED).sum(1).tolist()
        for index, loss, length in zip(indices, sums, lengths, strict=True):
            losses[index] = (loss, length)
    return losses


@torch.inference_mode()
def generate_equations(
    model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase, prompts: Sequence[str]
) -> list[str]:
    """Return the most likely continuation of each prompt, token by token."""
    equations = [""] * len(prompts)
    for indices in _by_length(prompts):
        selected = [prompts[index] for index in indices]
        inputs = tokenizer(
            selected, padding=True, padding_side="left", return_token_type_ids=False, return_tensors="pt"
        )
        sequences = model.generate(**inputs, do_sample=False, max_new_tokens=MAX_EQUATION_TOKENS)
        generated = sequences[:, inputs["input_ids"].shape[1] :]
        texts = tokenizer.batch_decode(generated, skip_special_tokens=True)
        for index, text in zip(indices, texts, strict=True):
            equations[index] = text.strip()
    return equations


def is_right(equation: str, row: Mapping[str, Any]) -> bool:
    """Return whether the value of an equation with N0, N1, ... is the answer of a row of [`text_row`]."""
    try:
        value = Expression.from_infix(equation).evaluate(row["numbers"])
    except ExpressionError:
        return False
    return answers_match(value, row["answer"])


def evaluate(
    model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase, rows: Sequence[Mapping[str, Any]]
) -> dict[str, Any]:
    """Return the losses, numbers of tokens, and outcomes by dataset of the rows of [`text_row`], and the model's
    numbers of parameters."""
    texts = [full_text(row) for row in rows]
    losses = []
    num_tokens = []
    for loss, length in text_losses(model, tokenizer, texts):
        losses.append(round(loss, 1))
        num_tokens.append(length)
    prompts = [row["prompt"] for row in rows]
    outcomes: dict[str, str] = {}
    for equation, row in zip(generate_equations(model, tokenizer, prompts), rows, strict=True):
        outcome = str(int(is_right(equation, row)))
        outcomes[row["dataset"]] = outcomes.get(row["dataset"], "") + outcome
    return {
        "losses": losses,
        "num_tokens": num_tokens,
        "outcomes": outcomes,
        "parameters": count_parameters(model),
        "parameters_without_embeddings": count_parameters(model, embeddings=False),
    }


@torch.inference_mode()
def top_k_losses(
    teacher: PreTrainedModel,
    student: PreTrainedModel,
    tokenizer: PreTrainedTokenizerBase,
    texts: Sequence[str],
    sizes: Sequence[int],
) -> dict[int, dict[str, float]]:
    """
    Return the mean divergence `loss` of a student from what a cache stores of its teacher, as
    `CausalLMDistillationConfig` with `cache_top_k`, for each size and for all tokens of the vocabulary, and the mean
    probability `mass` of the stored tokens.
    """
    divergence = LogitDistillationLoss(temperature=1.0, reduction="mean")
    vocab_size = teacher.config.vocab_size
    losses = dict.fromkeys((*sizes, vocab_size), 0.0)
    masses = dict.fromkeys((*sizes, vocab_size), 0.0)
    num_tokens = 0
    for _, batch in _batches(tokenizer, texts):
        labels = _next_tokens(batch)
        is_token = labels != IGNORED
        inputs = {"input_ids": batch["input_ids"], "attention_mask": batch["attention_mask"]}
        teacher_logits = teacher(**inputs).logits[is_token]
        student_logits = student(**inputs).logits[is_token]
        num_positions = len(teacher_logits)
        num_tokens += num_positions
        losses[vocab_size] += num_positions * divergence(student_logits, teacher_logits).item()
        masses[vocab_size] += num_positions
        for size in sizes:
            stored = TopClasses(size, 1.0, vocab_size)
            classes, log_probs = stored.of(teacher_logits, labels[is_token])
            loss = divergence(student_logits, log_probs, top_classes=classes)
            losses[size] += num_positions * loss.item()
            masses[size] += log_probs[:, :-1].exp().sum().item()
    figures = {}
    for size, loss in losses.items():
        figures[size] = {"loss": loss / num_tokens, "mass": masses[size] / num_tokens}
    return figures


def _by_length(texts: Sequence[str]) -> Iterator[list[int]]:
    """Yield the indices of batches of texts of similar length."""
    order = sorted(range(len(texts)), key=lambda index: len(texts[index]))
    for start in range(0, len(order), BATCH_SIZE):
        yield order[start : start + BATCH_SIZE]


def _batches(
    tokenizer: PreTrainedTokenizerBase, texts: Sequence[str]
) -> Iterator[tuple[list[int], dict[str, Tensor]]]:
    """Yield batches of texts with their indices."""
    rows = tokenize_causal_rows([{"text": text} for text in texts], tokenizer)
    collator = CausalCollator(tokenizer)
    for indices in _by_length(texts):
        yield indices, collator([rows[index] for index in indices])


def _next_tokens(batch: Mapping[str, Tensor]) -> Tensor:
    """Return the label `(batch, length)` of the next token at each position."""
    labels = batch["labels"][:, 1:]
    last = labels.new_full((len(labels), 1), IGNORED)
    return torch.cat([labels, last], 1)
