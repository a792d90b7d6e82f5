"""Layer of the answer verifier in NumPy."""

import numpy as np

from hf_mwp.runtime.encoder import BLOCK_WIDTH, gelu, layer_norm, softmax
from hf_mwp.runtime.few_rows_linear import FewRowsLinear
from hf_mwp.runtime.weights import Linear, Weights


class VerifierLayer:
    """
    Layer on the nodes of equations: attention to the nodes of the same equation, attention to the text, and a
    feed-forward network, each with a normalisation before it.

    Args:
        weights (`Weights`): Weights of the verifier.
        prefix (`str`): Start of the names of the layer's weights.
        num_heads (`int`): Number of attention heads.
        epsilon (`float`): Epsilon of the normalisations.
    """

    def __init__(self, weights: Weights, prefix: str, num_heads: int, epsilon: float) -> None:
        def norm(name: str) -> Linear:
            return weights[f"{prefix}{name}.weight"], weights[f"{prefix}{name}.bias"]

        def linear(name: str) -> FewRowsLinear:
            return FewRowsLinear(*weights.linear(f"{prefix}{name}"), BLOCK_WIDTH)

        self.num_heads = num_heads
        self.epsilon = epsilon
        self.attention_norm = norm("attention_norm")
        self.query_key_value = linear("query_key_value")
        self.attention_output = linear("attention_output")
        self.text_norm = norm("text_norm")
        self.text_query = linear("text_query")
        self.text_key_value = linear("text_key_value")
        self.text_output = linear("text_output")
        self.output_norm = norm("output_norm")
        self.intermediate = linear("intermediate")
        self.output = linear("output")

    def __call__(self, nodes: np.ndarray, text: np.ndarray, is_other: np.ndarray) -> np.ndarray:
        """Return the next states of nodes `(n, width)`, which attend to the hidden states `(S, H)` of the text and to
        each other, except where `is_other` `(n, n)` is true."""
        query, key, value = np.split(self.query_key_value(self._normalise(nodes, self.attention_norm)), 3, -1)
        nodes = nodes + self.attention_output(self._attend(query, key, value, is_other))
        query = self.text_query(self._normalise(nodes, self.text_norm))
        key, value = np.split(self.text_key_value(text), 2, -1)
        nodes = nodes + self.text_output(self._attend(query, key, value))
        inner = self.intermediate(self._normalise(nodes, self.output_norm))
        return nodes + self.output(gelu(inner))

    def _normalise(self, nodes: np.ndarray, norm: Linear) -> np.ndarray:
        return layer_norm(nodes, norm, self.epsilon)

    def _attend(
        self, query: np.ndarray, key: np.ndarray, value: np.ndarray, hidden_keys: np.ndarray | None = None
    ) -> np.ndarray:
        """Return the contexts `(n, width)` of queries, without keys where `hidden_keys` `(n, keys)` is true."""
        width = query.shape[-1]
        query, key, value = (self._split_heads(rows) for rows in (query, key, value))
        scores = query @ key.transpose(0, 2, 1)
        scores *= (width // self.num_heads) ** -0.5
        if hidden_keys is not None:
            scores[:, hidden_keys] = -np.inf
        contexts = softmax(scores) @ value
        return contexts.transpose(1, 0, 2).reshape(-1, width)

    def _split_heads(self, rows: np.ndarray) -> np.ndarray:
        """Return rows `(n, width)` as `(heads, n, size)`."""
        return rows.reshape(len(rows), self.num_heads, -1).transpose(1, 0, 2)
