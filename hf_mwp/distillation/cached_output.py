"""A teacher's output as a cache gives it back."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from transformers.utils import ModelOutput


@dataclass
class CachedOutput(ModelOutput):
    """
    What a trainer reads of a teacher's output, under the names that a live one has.

    Args:
        logits (`torch.FloatTensor`, *optional*): As the teacher's; zero where no label stands.
        hidden_states (`tuple`, *optional*): As the teacher's (its encoder's, if it has a decoder as well), zero where
            no token stands; `None` for layers that are not kept.
        bottleneck_states (`tuple`, *optional*): The same for the narrow states of its bottleneck networks.
    """

    logits: torch.FloatTensor | None = None
    hidden_states: tuple[torch.FloatTensor | None, ...] | None = None
    bottleneck_states: tuple[torch.FloatTensor | None, ...] | None = None


__all__ = ["CachedOutput"]
