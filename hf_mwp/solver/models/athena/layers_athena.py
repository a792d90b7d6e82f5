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
        inputs = self.norm(rows) if self.is_pre else rows
        hidden = self.down(F.gelu(self.up(inputs)))
        rows = rows + self.dropout(hidden)
        return rows if self.is_pre else self.norm(rows)


class Aggregate(nn.Module):
    """Layer for `ADD` or `MUL` of two thoughts: each attends over both, the results are summed, and fed forward.
    Queries, keys and values depend on one thought only, so [`~Aggregate.project`] computes them once per thought."""

    def __init__(self, config: AthenaConfig) -> None:
        super().__init__()
        self.is_pre = config.norm == "pre"
        self.num_heads = config.num_attention_heads
        self.norm = nn.LayerNorm(config.hidden_size, eps=config.layer_norm_eps)
        self.query_key_value = nn.Linear(config.hidden_size, 3 * config.hidden_size)
        self.dense = nn.Linear(config.hidden_size, config.hidden_size)
        self.dropout = nn.Dropout(config.dropout)
        self.feed_forward = FeedForward(config)

    def project(self, thoughts: Tensor) -> Tensor:
        """Compute queries, keys and values `(n, 3 H)` of thoughts `(n, H)`."""
        inputs = self.norm(thoughts) if self.is_pre else thoughts
        return self.query_key_value(inputs)

    def forward(self, thoughts: Tensor, projected: Tensor, left: Tensor, right: Tensor) -> Tensor:
        """Compute embeddings `(m, H)` of the pairs `left`, `right` `(m,)` of thoughts `(n, H)`."""
        size = thoughts.shape[1]
        heads = (self.num_heads, size // self.num_heads)
        left_query, left_key, left_value = projected.index_select(0, left).split(size, 1)
        right_query, right_key, right_value = projected.index_select(0, right).split(size, 1)
        key_difference = (left_key - right_key).unflatten(1, heads)

        def left_weight(query: Tensor) -> Tensor:
            # The softmax over two scores is a sigmoid of their difference.
            scores = (query.unflatten(1, heads) * key_difference).sum(-1, keepdim=True)
            return torch.sigmoid(scores * heads[1] ** -0.5)

        # Sum of the left value's weights in the 2 x 2 attention; the right value has the rest of 2.
        weight = left_weight(left_query) + left_weight(right_query)
        mixed = 2 * right_value + (weight * (left_value - right_value).unflatten(1, heads)).flatten(1)
        rows = self.dropout(self.dense(mixed)) + thoughts.index_select(0, left) + thoughts.index_select(0, right)
        if not self.is_pre:
            rows = self.norm(rows)
        return self.feed_forward(rows)


class Judge(nn.Module):
    """Reasoning or answering layer: a feed-forward layer, attention over reference rows (added one by one), a second
    feed-forward layer whose output is the thought's context, and one logit."""

    def __init__(self, config: AthenaConfig) -> None:
        super().__init__()
        size = config.hidden_size
        self.is_pre = config.norm == "pre"
        self.num_heads = config.num_attention_heads
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
        return rows, self.project_query(rows)

    def project_query(self, rows: Tensor) -> Tensor:
        """Compute queries `(n, H)` of residual rows `(n, H)`."""
        inputs = self.norm(rows) if self.is_pre else rows
        return self.query(inputs)

    def project_reference(self, reference: Tensor) -> Tensor:
        """Compute keys and values `(n, 2 H)` of reference rows `(n, H)`."""
        if self.is_pre:
            reference = self.reference_norm(reference)
        return self.key_value(reference)

    def attend(self, queries: Tensor, keys_values: Tensor, visible: Tensor, places: Tensor) -> Tensor:
        """Attend with queries `(A, m, H)` over keys and values `(A, R, 2 H)`, with a mask `(A, m or 1, R)`, and return
        the results `(n, H)` at `places` in the flattened queries."""
        keys, values = keys_values.chunk(2, -1)
        attended = F.scaled_dot_product_attention(
            self._split_heads(queries),
            self._split_heads(keys),
            self._split_heads(values),
            attn_mask=visible.unsqueeze(1),
        )
        return attended.transpose(1, 2).flatten(2).flatten(0, 1).index_select(0, places)

    def _split_heads(self, rows: Tensor) -> Tensor:
        return rows.unflatten(-1, (self.num_heads, -1)).transpose(1, 2)

    def conclude(self, rows: Tensor, attended: Tensor) -> tuple[Tensor, Tensor]:
        """Compute contexts `(n, H)` and logits `(n,)` from residual rows and attended values `(n, H)`."""
        rows = rows + self.dropout(self.dense(attended))
        if not self.is_pre:
            rows = self.norm(rows)
        context = self.output(rows)
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
        selected = [self.weight[row : row + 1] for row in rows]
        weight = torch.cat([self.weight[:0], *selected])
        return self.down(F.gelu(self.up(self.norm(weight))))
