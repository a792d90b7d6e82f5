"""Layers of ATHENA, which compute thoughts of many problems at once, as packed rows."""

from collections.abc import Sequence

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from .configuration_athena import AthenaConfig


def scatter_rows(rows: Tensor, places: Tensor, shape: tuple[int, int], padding: float = 0.0) -> Tensor:
    """Return a tensor `(*shape, ...)` with rows `(n, ...)` at `places` `(n,)` of the flattened shape, else padding."""
    padded = rows.new_full((shape[0] * shape[1], *rows.shape[1:]), padding)
    return padded.index_copy(0, places, rows).unflatten(0, shape)


class FeedForward(nn.Module):
    """`x + Dropout(Lin(GELU(Lin(LN(x)))))`; with `norm="post"`, `LN(x + Dropout(Lin(GELU(Lin(x)))))`."""

    def __init__(self, config: AthenaConfig) -> None:
        super().__init__()
        self.is_pre = config.norm == "pre"
        self.norm = nn.LayerNorm(config.hidden_size, eps=config.layer_norm_eps)
        self.up = nn.Linear(config.hidden_size, config.intermediate_size)
        self.down = nn.Linear(config.intermediate_size, config.hidden_size)
        self.dropout = nn.Dropout(config.dropout)

    def forward(self, rows: Tensor) -> Tensor:
        hidden = self.down(F.gelu(self.up(self.norm(rows) if self.is_pre else rows)))
        rows = rows + self.dropout(hidden)
        return rows if self.is_pre else self.norm(rows)


class Aggregate(nn.Module):
    """Layer for `ADD` or `MUL` of two thoughts: each attends over both, the results are summed, and fed forward.
    Queries, keys and values depend on one thought only, so [`~Aggregate.project`] computes them once per thought."""

    def __init__(self, config: AthenaConfig) -> None:
        super().__init__()
        self.is_pre, self.num_heads = config.norm == "pre", config.num_attention_heads
        self.norm = nn.LayerNorm(config.hidden_size, eps=config.layer_norm_eps)
        self.query_key_value = nn.Linear(config.hidden_size, 3 * config.hidden_size)
        self.dense = nn.Linear(config.hidden_size, config.hidden_size)
        self.dropout = nn.Dropout(config.dropout)
        self.feed_forward = FeedForward(config)

    def project(self, thoughts: Tensor) -> Tensor:
        """Compute queries, keys and values `(n, 3 H)` of thoughts `(n, H)`."""
        return self.query_key_value(self.norm(thoughts) if self.is_pre else thoughts)

    def forward(self, thoughts: Tensor, projected: Tensor, left: Tensor, right: Tensor) -> Tensor:
        """Compute embeddings `(m, H)` of the pairs `left`, `right` `(m,)` of thoughts `(n, H)`."""
        size = thoughts.shape[1]
        first, second = projected.index_select(0, left), projected.index_select(0, right)
        (query, key, value), (query_2, key_2, value_2) = first.split(size, 1), second.split(size, 1)
        # Sum of the left value's weights in the 2 x 2 attention; the right value has the rest of 2. The softmax over
        # two scores is a sigmoid of their difference.
        heads = (self.num_heads, size // self.num_heads)
        difference = (key - key_2).unflatten(1, heads)
        weight = sum(
            torch.sigmoid((each.unflatten(1, heads) * difference).sum(-1, keepdim=True) * heads[1] ** -0.5)
            for each in (query, query_2)
        )
        mixed = 2 * value_2 + (weight * (value - value_2).unflatten(1, heads)).flatten(1)
        rows = self.dropout(self.dense(mixed)) + thoughts.index_select(0, left) + thoughts.index_select(0, right)
        return self.feed_forward(rows if self.is_pre else self.norm(rows))


class Judge(nn.Module):
    """Reasoning or answering layer: a feed-forward layer, attention over reference rows (added one by one), a second
    feed-forward layer whose output is the thought's context, and one logit."""

    def __init__(self, config: AthenaConfig) -> None:
        super().__init__()
        size = config.hidden_size
        self.is_pre, self.num_heads = config.norm == "pre", config.num_attention_heads
        self.feed_forward = FeedForward(config)
        self.norm = nn.LayerNorm(size, eps=config.layer_norm_eps)
        # With `norm="post"`, the authors' implementation has this layer norm too, but never calls it.
        self.reference_norm = nn.LayerNorm(size, eps=config.layer_norm_eps) if self.is_pre else None
        self.query = nn.Linear(size, size)
        self.key_value = nn.Linear(size, 2 * size)
        self.dense = nn.Linear(size, size)
        self.dropout = nn.Dropout(config.dropout)
        self.output = FeedForward(config)
        self.score = nn.Linear(size, 1)

    def prepare(self, thoughts: Tensor) -> tuple[Tensor, Tensor]:
        """Compute residual rows and queries `(n, H)` of thoughts `(n, H)`."""
        rows = self.feed_forward(thoughts)
        return rows, self.query(self.norm(rows) if self.is_pre else rows)

    def project_reference(self, reference: Tensor) -> Tensor:
        """Compute keys and values `(n, 2 H)` of reference rows `(n, H)`."""
        return self.key_value(self.reference_norm(reference) if self.is_pre else reference)

    def attend(self, queries: Tensor, keys_values: Tensor, visible: Tensor, places: Tensor) -> Tensor:
        """Attend with queries `(A, m, H)` over keys and values `(A, R, 2 H)`, with a mask `(A, m or 1, R)`, and return
        the results `(n, H)` at `places` in the flattened queries."""
        parts = (queries, *keys_values.chunk(2, -1))
        query, key, value = (part.unflatten(-1, (self.num_heads, -1)).transpose(1, 2) for part in parts)
        attended = F.scaled_dot_product_attention(query, key, value, attn_mask=visible.unsqueeze(1))
        return attended.transpose(1, 2).flatten(2).flatten(0, 1).index_select(0, places)

    def conclude(self, rows: Tensor, attended: Tensor) -> tuple[Tensor, Tensor]:
        """Compute contexts `(n, H)` and logits `(n,)` from residual rows and attended values `(n, H)`."""
        rows = rows + self.dropout(self.dense(attended))
        context = self.output(rows if self.is_pre else self.norm(rows))
        return context, self.score(context).squeeze(-1)


class ConstantEmbedding(nn.Module):
    """Embeddings of constants: `Lin(GELU(Lin(LN(v))))` of learned vectors `v`, without a residual."""

    def __init__(self, config: AthenaConfig) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(len(config.initial_constants), config.hidden_size))
        self.norm = nn.LayerNorm(config.hidden_size, eps=config.layer_norm_eps)
        self.up = nn.Linear(config.hidden_size, config.intermediate_size)
        self.down = nn.Linear(config.intermediate_size, config.hidden_size)

    def forward(self, rows: Sequence[int]) -> Tensor:
        """Compute embeddings `(n, H)` of the constants with the given indices."""
        weight = torch.cat([self.weight[:0], *(self.weight[row : row + 1] for row in rows)])
        return self.down(F.gelu(self.up(self.norm(weight))))
