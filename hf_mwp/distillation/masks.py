"""Masks of the tokens, decoder states and predictions that are compared."""

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor, nn


def token_mask(inputs: Mapping[str, Any], shape: Sequence[int], device: Any) -> Tensor:
    """Return a mask `(batch, tokens)` that is true at tokens, or everywhere without an attention mask in the batch."""
    mask = inputs.get("attention_mask")
    if mask is None or mask.dim() != 2:
        return torch.ones(tuple(shape), dtype=torch.bool, device=device)
    return mask.bool()


def decoder_mask(inputs: Mapping[str, Any], kind: str = "labels") -> Tensor:
    """
    Return a mask `(batch, positions)` of the decoder states that are compared: the states that predict a label, or
    with `"shifted"` the states whose input token is a label (`shift_tokens_right(labels) != pad` in the authors'
    implementation of Improving Language Model Distillation through Hidden State Matching, ICLR 2025). `"shifted"`
    leaves out the start token, and includes the end token except in the longest rows of the batch. A decoder whose
    states do not correspond one to one to labels returns its own `decoder_state_mask` ([`~models.decoder.Decoder`]).
    """
    if (own := inputs.get("decoder_state_mask")) is not None:
        if kind != "labels":
            raise ValueError(f'This decoder has no shifted states, got {kind!r}. Set `decoder_mask="labels"`.')
        return own
    labels = inputs.get("labels")
    if labels is None:
        raise ValueError("Labels are needed to select the decoder states to compare. Pass `labels`.")
    valid = labels != -100
    return valid if kind == "labels" else nn.functional.pad(valid[:, :-1], (1, 0))


def read_mask(name: str, inputs: Mapping[str, Any], shape: Sequence[int], device: Any) -> Tensor:
    """Return the mask `(batch, positions)` of a feature with one vector per token, by its name in [`Features`]."""
    return decoder_mask(inputs) if name.startswith("decoder_") else token_mask(inputs, shape, device)


def label_mask(inputs: Mapping[str, Any], shape: Sequence[int], device: Any, offset: int = 0) -> Tensor:
    """
    Return a mask `(batch, positions)` of the logits that are compared: `offset` positions before each label, or at all
    tokens if there are no labels.
    """
    labels = inputs.get("labels")
    if labels is None:
        return token_mask(inputs, shape, device)
    return nn.functional.pad(labels[:, offset:] != -100, (0, offset)) if offset else labels != -100


def label_offset(model: nn.Module, inputs: Mapping[str, Any]) -> int:
    """
    Return the offset from a label back to the logits that a model's own loss compares with it: 1 for causal language
    models that shift labels internally, 0 for all other models.

    The class of a model does not determine the offset (`BartForCausalLM` does not shift labels), so it is measured.
    All labels except those at one position are masked, and the gradient of the loss is non-zero only at the logits
    that this position is compared with.

    Returns 0 for a batch without a label for each position. Raises `ValueError` if the loss uses logits at a different
    position, or is not computed from the logits.
    """
    labels = inputs.get("labels")
    if labels is None or labels.dim() != 2 or labels.is_floating_point():
        return 0
    # Choose the last position with the most labels, but not position 0, whose label is cut off by a shift.
    counts = (labels != -100).sum(0)
    counts[:1] = 0
    last = labels.shape[1] - 1
    elsewhere = torch.arange(last + 1, device=labels.device) != last - counts.flip(0).argmax()
    probe = labels.masked_fill(elsewhere, -100)
    gradient = None
    with torch.enable_grad():
        output = model(**{**inputs, "labels": probe})
        loss, logits = output.get("loss"), output.get("logits")
        if loss is None or logits is None or logits.dim() != 3 or not loss.requires_grad:
            return 0
        if logits.requires_grad:
            (gradient,) = torch.autograd.grad(loss.sum(), logits, allow_unused=True)
    if gradient is None:
        raise ValueError(
            f"`{type(model).__name__}` does not compute its loss from the logits that it returns, so the logits of "
            "each label are unknown. Set `soft_label_weight=0`, or pass rows without labels and set "
            "`soft_label_weight=1`."
        )
    seen = gradient.abs().sum(-1) > 0
    for offset in (0, 1):
        expected = label_mask({"labels": probe}, (), None, offset)
        if seen.shape == expected.shape and not (seen & ~expected).any():
            return offset
    raise ValueError(
        f"`{type(model).__name__}` compares labels with logits that are neither at the label's position nor at the "
        "one before. Set `soft_label_weight=0`, or pass rows without labels and set `soft_label_weight=1`."
    )
