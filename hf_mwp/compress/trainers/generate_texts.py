"""Functions that generate and score texts with a sequence-to-sequence model."""

import copy
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from hf_mwp.compress.models.model_kind import unwrapped


# Positions count from the left, so padding must be on the right.
PADDED = {"padding": True, "padding_side": "right", "truncation": True, "return_tensors": "pt"}


@dataclass(frozen=True)
class GeneratedText:
    """A generated text with its log probability, the sum over its tokens without length penalty."""

    text: str
    log_probability: float
    num_tokens: int


@torch.inference_mode()
def generate_texts(
    model: PreTrainedModel,
    tokenizer: PreTrainedTokenizerBase,
    texts: Sequence[str],
    num_beams: int = 1,
    num_return_sequences: int = 1,
    max_length: int | None = None,
    batch_size: int = 64,
    progress: Callable[[Sequence], Iterable] | None = None,
) -> list[list[GeneratedText]]:
    """Generate texts from each source text, best first. `max_length` defaults to that of the generation config."""
    options = {"num_beams": num_beams, "num_return_sequences": num_return_sequences}
    options |= {} if max_length is None else {"max_length": within_positions(model, max_length)}
    found: dict[int, list[GeneratedText]] = {}
    for batch, inputs in _batches(model, tokenizer, texts, batch_size, progress):
        with searching(model, max_length):
            sequences = model.generate(**inputs, **options)
        ids, ends = sequences[:, 1:], model.generation_config.eos_token_id
        is_end = torch.isin(ids, torch.tensor([-1 if ends is None else ends], device=ids.device).flatten()).long()
        # Tokens after the first end token do not count.
        labels = ids.masked_fill(is_end.cumsum(1) > is_end, -100)
        repeated = {name: value.repeat_interleave(num_return_sequences, 0) for name, value in inputs.items()}
        # mBART would derive different inputs of the decoder from the labels.
        repeated["decoder_input_ids"] = sequences[:, :-1]
        scores = _log_probabilities(model, repeated, labels)
        decoded = decode_texts(tokenizer, sequences.cpu())
        made = [GeneratedText(text, *score) for text, score in zip(decoded, scores, strict=True)]
        for place, index in enumerate(batch):
            found[index] = made[place * num_return_sequences : (place + 1) * num_return_sequences]
    return [found[index] for index in range(len(texts))]


@torch.inference_mode()
def score_texts(
    model: PreTrainedModel,
    tokenizer: PreTrainedTokenizerBase,
    texts: Sequence[str],
    targets: Sequence[str],
    batch_size: int = 64,
) -> list[tuple[float, int]]:
    """Return the log probability of each target text given its source text, and the number of target tokens."""
    found: dict[int, tuple[float, int]] = {}
    for batch, inputs in _batches(model, tokenizer, texts, batch_size):
        read = tokenizer(text_target=[targets[index] for index in batch], **PADDED).to(model.device)
        labels = read["input_ids"].masked_fill(read["attention_mask"] == 0, -100)
        found |= zip(batch, _log_probabilities(model, inputs, labels), strict=True)
    return [found[index] for index in range(len(texts))]


@contextmanager
def searching(model: nn.Module, max_length: int | None) -> Iterator[None]:
    """Let `generate` not sample, and prefer `max_length` (if given) to `max_new_tokens` of the generation config."""
    owner = unwrapped(model)
    usual, owner.generation_config = owner.generation_config, copy.deepcopy(owner.generation_config)
    owner.generation_config.update(do_sample=False, **({} if max_length is None else {"max_new_tokens": None}))
    try:
        yield
    finally:
        owner.generation_config = usual


def within_positions(model: PreTrainedModel, max_length: int) -> int:
    """Return the smaller of `max_length` and the number of positions of the model, if these are limited."""
    return min(max_length, getattr(model.config, "max_position_embeddings", None) or max_length)


def decode_texts(tokenizer: PreTrainedTokenizerBase, ids: Any) -> list[str]:
    """Decode rows of token ids. Negative ids (padding of gathered predictions) are skipped."""
    ids = np.where(np.asarray(ids) < 0, tokenizer.pad_token_id, ids)
    return [text.strip() for text in tokenizer.batch_decode(ids, skip_special_tokens=True)]


def _batches(model, tokenizer, texts, batch_size, progress=None):
    """Yield indices and model inputs of texts with similar lengths, with the model in evaluation mode."""
    order = sorted(range(len(texts)), key=lambda index: len(texts[index]))
    batches = [order[start : start + batch_size] for start in range(0, len(order), batch_size)]
    was_training = model.training
    model.eval()
    for batch in progress(batches) if progress else batches:
        read = tokenizer([texts[index] for index in batch], **PADDED)
        yield batch, {name: read[name].to(model.device) for name in ("input_ids", "attention_mask")}
    model.train(was_training)


def _log_probabilities(model: PreTrainedModel, inputs: dict[str, Tensor], labels: Tensor) -> list[tuple[float, int]]:
    logits, counted = model(**inputs, labels=labels).logits.float(), labels != -100
    losses = torch.nn.functional.cross_entropy(logits.transpose(1, 2), labels, reduction="none")
    return list(zip((-losses.sum(1)).tolist(), counted.sum(1).tolist(), strict=True))
