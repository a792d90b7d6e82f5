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
from hf_mwp.utils.length_batches import batches_by_length


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
    if max_length is not None:
        options["max_length"] = within_positions(model, max_length)
    generated: list[list[GeneratedText]] = [[] for _ in texts]
    for indices, inputs in _batches(model, tokenizer, texts, batch_size, progress):
        with searching(model, max_length):
            sequences = model.generate(**inputs, **options)
        token_ids = sequences[:, 1:]
        end_token_ids = model.generation_config.eos_token_id
        if end_token_ids is None:
            end_token_ids = -1
        end_tokens = torch.tensor([end_token_ids], device=token_ids.device).flatten()
        is_end = torch.isin(token_ids, end_tokens).long()
        # Tokens after the first end token do not count.
        labels = token_ids.masked_fill(is_end.cumsum(1) > is_end, -100)
        repeated = {name: value.repeat_interleave(num_return_sequences, 0) for name, value in inputs.items()}
        # mBART would derive different inputs of the decoder from the labels.
        repeated["decoder_input_ids"] = sequences[:, :-1]
        scores = _log_probabilities(model, repeated, labels)
        decoded = decode_texts(tokenizer, sequences.cpu())
        for number, (text, score) in enumerate(zip(decoded, scores, strict=True)):
            index = indices[number // num_return_sequences]
            generated[index].append(GeneratedText(text, *score))
    return generated


@torch.inference_mode()
def score_texts(
    model: PreTrainedModel,
    tokenizer: PreTrainedTokenizerBase,
    texts: Sequence[str],
    targets: Sequence[str],
    batch_size: int = 64,
) -> list[tuple[float, int]]:
    """Return the log probability of each target text given its source text, and the number of target tokens."""
    score_of_text: dict[int, tuple[float, int]] = {}
    for indices, inputs in _batches(model, tokenizer, texts, batch_size):
        encoded = tokenizer(text_target=[targets[index] for index in indices], **PADDED).to(model.device)
        labels = encoded["input_ids"].masked_fill(encoded["attention_mask"] == 0, -100)
        scores = _log_probabilities(model, inputs, labels)
        score_of_text |= zip(indices, scores, strict=True)
    return [score_of_text[index] for index in range(len(texts))]


@contextmanager
def searching(model: nn.Module, max_length: int | None) -> Iterator[None]:
    """Let `generate` not sample, and prefer `max_length` (if given) to `max_new_tokens` of the generation config."""
    model = unwrapped(model)
    usual_config = model.generation_config
    model.generation_config = copy.deepcopy(usual_config)
    model.generation_config.update(do_sample=False)
    if max_length is not None:
        model.generation_config.update(max_new_tokens=None)
    try:
        yield
    finally:
        model.generation_config = usual_config


def within_positions(model: PreTrainedModel, max_length: int) -> int:
    """Return the smaller of `max_length` and the number of positions of the model, if these are limited."""
    num_positions = getattr(model.config, "max_position_embeddings", None)
    return min(max_length, num_positions or max_length)


def decode_texts(tokenizer: PreTrainedTokenizerBase, ids: Any) -> list[str]:
    """Decode rows of token ids. Negative ids (padding of gathered predictions) are skipped."""
    ids = np.where(np.asarray(ids) < 0, tokenizer.pad_token_id, ids)
    return [text.strip() for text in tokenizer.batch_decode(ids, skip_special_tokens=True)]


def _batches(model, tokenizer, texts, batch_size, progress=None):
    """Yield indices and model inputs of texts with similar lengths, with the model in evaluation mode."""
    batches: Iterable = batches_by_length(list(map(len, texts)), batch_size)
    if progress:
        batches = progress(batches)
    was_training = model.training
    model.eval()
    for indices in batches:
        encoded = tokenizer([texts[index] for index in indices], **PADDED)
        yield indices, {name: encoded[name].to(model.device) for name in ("input_ids", "attention_mask")}
    model.train(was_training)


def _log_probabilities(model: PreTrainedModel, inputs: dict[str, Tensor], labels: Tensor) -> list[tuple[float, int]]:
    logits = model(**inputs, labels=labels).logits.float()
    losses = nn.functional.cross_entropy(logits.transpose(1, 2), labels, reduction="none")
    log_probabilities = (-losses.sum(1)).tolist()
    num_tokens = (labels != -100).sum(1).tolist()
    return list(zip(log_probabilities, num_tokens, strict=True))
