"""Comparison of the costs of models."""

from collections.abc import Mapping
from functools import partial

import torch
from torch import nn

from .efficiency import count_flops, count_parameters
from .latency import compare_latency


@torch.inference_mode()
def compare_costs(
    models: Mapping[str, nn.Module], batch_size: int = 1, tokens: int = 32, repeats: int = 30
) -> dict[str, dict[str, float]]:
    """
    Size and speed of encoders, timed in turns on the same made-up texts; of times, only ratios mean anything.

    Args:
        models (`Mapping[str, nn.Module]`): Encoders that take `input_ids`, in evaluation mode, by name.
        batch_size (`int`, *optional*, defaults to 1), tokens (`int`, *optional*, defaults to 32): Shape of the texts.
        repeats (`int`, *optional*, defaults to 30): Timed calls of each.

    Returns:
        `dict`: by name `parameters`, `parameters_without_embeddings`, `flops` of a call ([`count_flops`]), and
        `seconds`, the median.
    """
    calls = {}
    for name, model in models.items():
        ids = torch.ones(batch_size, tokens, dtype=torch.long, device=next(model.parameters()).device)
        calls[name] = partial(model, input_ids=ids, attention_mask=torch.ones_like(ids))
    times = compare_latency(calls, repeats=repeats)
    return {
        name: {
            "parameters": count_parameters(model),
            "parameters_without_embeddings": count_parameters(model, embeddings=False),
            "flops": count_flops(calls[name]),
            "seconds": times[name].median,
        }
        for name, model in models.items()
    }
