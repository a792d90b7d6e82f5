"""Output of solvers and decoders: decoded expressions."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Self

import torch
from transformers.utils import ModelOutput


@dataclass
class SolveOutput(ModelOutput):
    """
    Decoded expressions, best first.

    Args:
        sequences (`torch.LongTensor` of shape `(batch, num_return_sequences, longest)`): Prefix ids, then -100.
        scores (`torch.FloatTensor` of shape `(batch, num_return_sequences)`):
            Log probability: the sum over the symbols ([`GTSDecoder`]), or the log softmax over the pool
            ([`AthenaModel`]); minus infinity where there is no expression.
        finished (`torch.BoolTensor` of shape `(batch, num_return_sequences)`):
            Whether the row is an expression. Other rows are empty: without numbers and constants, there is none.
        capped (`torch.BoolTensor` of shape `(batch,)`, *optional*):
            Whether a limit on the number of candidates cut the search short. Only decoders with such limits set it.
        finite (`torch.BoolTensor` of shape `(batch,)`, *optional*):
            Whether no score was NaN or infinite, as weights may be. Rows of a problem with such scores are empty.
    """

    sequences: torch.LongTensor | None = None
    scores: torch.FloatTensor | None = None
    finished: torch.BoolTensor | None = None
    capped: torch.BoolTensor | None = None
    finite: torch.BoolTensor | None = None

    @classmethod
    def of(
        cls, found: Sequence[Sequence[tuple[Sequence[int], float]]], count: int, device: torch.device | str
    ) -> Self:
        """Return the output for `count` expressions per problem, from the prefix ids and scores of each problem."""
        longest = max((len(ids) for ids, _ in chain.from_iterable(found)), default=1)
        sequences = []
        scores = []
        for answers in found:
            num_empty = count - len(answers)
            rows = [[*ids, *[-100] * (longest - len(ids))] for ids, _ in answers]
            sequences.append(rows + [[-100] * longest] * num_empty)
            scores.append([score for _, score in answers] + [-torch.inf] * num_empty)
        scores = torch.tensor(scores)
        return cls(torch.tensor(sequences).to(device), scores.to(device), scores.isfinite().to(device))
