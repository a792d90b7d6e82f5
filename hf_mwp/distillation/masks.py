"""Masks of the positions that count: of tokens, of decoder states and of predictions."""

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor, nn


def token_mask(inputs: Mapping[str, Any], shape: Sequence[int], device: Any) -> Tensor:
    """`(batch, tokens)`, true at tokens; everywhere where the batch has no attention mask."""
    mask = inputs.get("attention_mask")
    if mask is None or mask.dim() != 2:
        return torch.ones(tuple(shape), dtype=torch.bool, device=device)
    return mask.bool()


def decoder_mask(inputs: Mapping[str, Any], kind: str = "labels") -> Tensor:
    """
    Mask `(batch, positions)` of the decoder states that count: those that predict a label, or with `"shifted"` those
    whose token is a label, `shift_tokens_right(labels) != pad` in the program of Dasgupta and Cohn. The latter leaves
    out the start token, and counts the end token where a longer row of the batch leaves room for it. A decoder whose
    states do not stand at labels gives `decoder_state_mask` ([`~models.decoder.Decoder`]).
    """
    if (own := inputs.get("decoder_state_mask")) is not None:
        if kind != "labels":
            raise ValueError(f'This decoder has no shifted states: set `decoder_mask="labels"`, got {kind!r}.')
        return own
    labels = inputs.get("labels")
    if labels is None:
        raise ValueError("Without labels nobody can tell which states of a decoder count: give `labels`.")
    valid = labels != -100
    return valid if kind == "labels" else nn.functional.pad(valid[:, :-1], (1, 0))


def read_mask(name: str, inputs: Mapping[str, Any], shape: Sequence[int], device: Any) -> Tensor:
    """Mask `(batch, positions)` of a feature with one vector for each token, see [`Features`] for its name."""
    return decoder_mask(inputs) if name.startswith("decoder_") else token_mask(inputs, shape, device)


def label_mask(inputs: Mapping[str, Any], shape: Sequence[int], device: Any, offset: int = 0) -> Tensor:
    """`(batch, positions)`, true where logits count: `offset` positions before a label, without labels at tokens."""
    labels = inputs.get("labels")
    if labels is None:
        return token_mask(inputs, shape, device)
    return nn.functional.pad(labels[:, offset:] != -100, (0, offset)) if offset else labels != -100


def label_offset(model: nn.Module, inputs: Mapping[str, Any]) -> int:
    """
    Return the offset from a label back to the logits that a model's own loss compares with it: 1 for the causal
    language models that shift labels inside, 0 for all other models.

    Names and types of models do not tell (`BartForCausalLM` does not shift), so the loss itself is asked: all labels
    but those at one place are taken away, and where its gradient with respect to the logits is not zero, it looks.

    A batch without a label for each position has the offset 0. Raises `ValueError` if the loss looks elsewhere, or is
    not computed from the logits.
    """
    labels = inputs.get("labels")
    if labels is None or labels.dim() != 2 or labels.is_floating_point():
        return 0
    # The last place with most labels, not the first of all, where shifted ones are cut off.
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
            f"`{type(model).__name__}` does not compute its loss from the logits that it returns, so nobody can tell "
            "which of them belong to which label: set `soft_label_weight=0`, or give rows without labels and "
            "`soft_label_weight=1`."
        )
    seen = gradient.abs().sum(-1) > 0
    for offset in (0, 1):
        expected = label_mask({"labels": probe}, (), None, offset)
        if seen.shape == expected.shape and not (seen & ~expected).any():
            return offset
    raise ValueError(
        f"`{type(model).__name__}` compares labels with logits at other positions than their own and the one before: "
        "set `soft_label_weight=0`, or give rows without labels and `soft_label_weight=1`."
    )
