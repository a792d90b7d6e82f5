"""What a GTS decoder computes of a batch."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor
from transformers.utils import ModelOutput


@dataclass
class GTSOutput(ModelOutput):
    """Output of [`GTSDecoder`].

    Args:
        loss (`torch.FloatTensor` of shape `(1,)`, *optional*, returned when targets are given):
            Sum of the nodes' cross entropies divided by the number of problems.
        logits (`torch.FloatTensor` of shape `(batch, target length, symbols)`):
            Scores of operators, constants and numbers at each node of the target tree, in prefix order.
    """

    loss: torch.FloatTensor | None = None
    logits: torch.FloatTensor | None = None


@dataclass
class DecoderMemory:
    """What a batch's encoder gives the decoder, computed once.

    Args:
        states (`(B, S, H)`): Hidden states, padding zeroed.
        padding (`(B, S)`, bool): True at padding.
        keys (`(B, S, H)`): Attention's share of the states.
        candidates (`(B, C, H)`): Embeddings of constants, then numbers.
        candidate_keys (`(B, C, H)`): Scorer's share of the candidates.
        missing (`(B, C)`, bool): True where a problem has no such number.
        root (`(B, H)`): First goal.
    """

    states: Tensor
    padding: Tensor
    keys: Tensor
    candidates: Tensor
    candidate_keys: Tensor
    missing: Tensor
    root: Tensor

    def select(self, problems: Tensor) -> DecoderMemory:
        """Memory of some of the problems."""
        return DecoderMemory(*(getattr(self, name)[problems] for name in self.__dataclass_fields__))
