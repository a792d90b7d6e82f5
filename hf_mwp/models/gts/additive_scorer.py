"""Additive (Bahdanau) scores between a query and the rows of its problem."""

import torch
from torch import Tensor, nn


class AdditiveScorer(nn.Module):
    """Scores `v . tanh(W_q query + W_k key)` of GTS (Xie and Sun 2019, equations 4 and 5).

    The weight of the concatenation `[query ; key]` is split, so that keys are projected once per problem however many
    nodes ask. The program's bias of `v` is left out: a softmax does not see it.

    Args:
        query_size (`int`): Width of queries.
        key_size (`int`): Width of keys.
        hidden_size (`int`): Width of the hidden layer.
    """

    def __init__(self, query_size: int, key_size: int, hidden_size: int) -> None:
        super().__init__()
        self.query = nn.Linear(query_size, hidden_size)
        self.key = nn.Linear(key_size, hidden_size, bias=False)
        self.score = nn.Linear(hidden_size, 1, bias=False)

    def project_keys(self, keys: Tensor) -> Tensor:
        """Hidden layer's share of the keys, `(..., key_size) -> (..., hidden_size)`."""
        return self.key(keys)

    def forward(self, query: Tensor, projected_keys: Tensor) -> Tensor:
        """Scores `(..., candidates)` of queries `(..., query_size)` and projected keys `(..., candidates, hidden)`.

        The leading dimensions broadcast.
        """
        return self._score(projected_keys + self.query(query).unsqueeze(-2))

    def score_rows(self, query: Tensor, projected_keys: Tensor, problems: Tensor) -> Tensor:
        """Scores `(rows, candidates)` of queries `(rows, query_size)`, each with the keys of its problem."""
        return self._score(projected_keys.index_select(0, problems).add_(self.query(query).unsqueeze(-2)))

    def _score(self, hidden: Tensor) -> Tensor:
        return torch.matmul(hidden.tanh_(), self.score.weight[0])
