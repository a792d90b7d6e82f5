"""Rows of an embedding table that are trained while the table is frozen."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional


class TrainedTokens(nn.Module):
    """
    Takes the place of some rows of a frozen embedding table, whose submodule `trained_tokens` it is: tokens that were
    added to a pretrained encoder have rows that say nothing yet. peft's own copies the whole table in each step.

    Args:
        embedding (`nn.Embedding`): The table; it stays where it is.
        tokens (`Sequence[int]`): Its rows to train.
    """

    name = "trained_tokens"

    def __init__(self, embedding: nn.Embedding, tokens: Sequence[int]) -> None:
        super().__init__()
        weight = embedding.weight
        self.rows = nn.Parameter(weight.detach()[list(tokens)].clone())
        # By token, the row here; -1 for those of the table.
        place = torch.full((weight.shape[0],), -1, device=weight.device)
        place[list(tokens)] = torch.arange(len(tokens), device=weight.device)
        self.register_buffer("place", place, persistent=False)
        embedding.add_module(self.name, self)
        self._hook = embedding.register_forward_hook(self._replace)

    def _replace(self, embedding: nn.Embedding, inputs: tuple[Any, ...], output: Tensor) -> Tensor:
        place = self.place[inputs[0]]
        # Some encoders scale what they embed.
        rows = functional.embedding(place.clamp(min=0), self.rows) * getattr(embedding, "embed_scale", 1.0)
        return torch.where((place >= 0)[..., None], rows.to(output.dtype), output)

    @torch.no_grad()
    def merge(self, embedding: nn.Embedding) -> None:
        """Writes the rows into the table, and leaves it."""
        embedding.weight[self.place >= 0] = self.rows[self.place[self.place >= 0]].to(embedding.weight.dtype)
        self._hook.remove()
        delattr(embedding, self.name)
