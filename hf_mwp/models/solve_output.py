"""What a solver finds."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from transformers.utils import ModelOutput


@dataclass
class SolveOutput(ModelOutput):
    """Decoded expressions, the best first.

    Args:
        sequences (`torch.LongTensor` of shape `(batch, num_return_sequences, longest)`):
            Prefix ids, -100 after the end.
        scores (`torch.FloatTensor` of shape `(batch, num_return_sequences)`):
            Sum of the log probabilities of the symbols; minus infinity where there is no expression.
        finished (`torch.BoolTensor` of shape `(batch, num_return_sequences)`):
            Whether the row is a complete expression. Rows that are not are empty: a problem without numbers and
            without constants has no expression.
    """

    sequences: torch.LongTensor | None = None
    scores: torch.FloatTensor | None = None
    finished: torch.BoolTensor | None = None
