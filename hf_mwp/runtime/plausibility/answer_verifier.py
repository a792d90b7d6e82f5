"""The answer verifier: a small network that reads the text and an equation together, in NumPy."""

from __future__ import annotations

import json
import shutil
from collections.abc import Sequence
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from hf_mwp.runtime.encoder import apply_linear, gelu, layer_norm
from hf_mwp.runtime.expressions import Expression
from hf_mwp.runtime.weights import Weights, read_metadata
from hf_mwp.utils.downloads import find_beside
from hf_mwp.utils.json_fields import TEXT, check_fields, damaged, integer, list_of, number
from hf_mwp.utils.usage_error import UsageError

from .equation_nodes import EquationNodes, read_equation
from .features import FEATURES
from .verifier_layer import VerifierLayer


MAX_WIDTH = 65_536

# Fields of the configuration, in the metadata of the file.
CONFIG = {
    "symbols": list_of(TEXT),
    "features": list_of(TEXT),
    "num_attention_heads": integer(1, MAX_WIDTH),
    "layer_norm_eps": number(0, 1),
}
CONFIG_KEY = "config"

SOLVER_FEATURES = ("log_mass", "num_trees", "rank")
"""Features of the solver's probability, which is too sure of its own training problems."""

FEATURE_INDICES = [index for index, feature in enumerate(FEATURES) if feature.name not in SOLVER_FEATURES]
"""Indices of the features that a verifier reads."""

FEATURE_NAMES = [FEATURES[index].name for index in FEATURE_INDICES]


class AnswerVerifier:
    """
    Network that scores equations for a text, by attention from the nodes of an equation's tree to each other and to
    the solver's hidden states of the text. [`AnswerVerifierModel`] is the same network in PyTorch.

    The solver scores an equation symbol by symbol, from the root on, and knows no values. The verifier reads a
    complete equation with the values of its subtrees (verifiers of Cobbe et al., 2021,
    https://huggingface.co/papers/2110.14168, which read a solution's text).

    Args:
        file (`str` or `Path`): File of the weights, whose metadata have the configuration.

    Raises:
        UsageError: The file is missing or damaged.
    """

    file_name = "verifier.safetensors"

    def __init__(self, file: str | PathLike) -> None:
        self.file = Path(file)
        weights = Weights(self.file.parent, [self.file.name])
        config = _read_config(self.file)
        self.symbol_ids = {symbol: index for index, symbol in enumerate(config["symbols"])}
        self.num_heads = config["num_attention_heads"]
        self.epsilon = config["layer_norm_eps"]
        self.symbols = weights["symbol_embeddings.weight"]
        self.positions = weights["position_embeddings.weight"]
        self.depths = weights["depth_embeddings.weight"]
        self.number_projection = weights.linear("number_projection")
        self.value_projection = weights.linear("value_projection")
        self.feature_hidden = weights.linear("feature_hidden")
        self.feature_projection = weights.linear("feature_projection")
        self.feature_scale = weights["feature_scale"]
        self.layers = []
        while f"layers.{len(self.layers)}.output.weight" in weights:
            self.layers.append(VerifierLayer(weights, f"layers.{len(self.layers)}.", self.num_heads, self.epsilon))
        self.norm = weights["norm.weight"], weights["norm.bias"]
        self.hidden = weights.linear("hidden")
        self.score = weights.linear("score")
        self.width = self.symbols.shape[1]
        self.encoder_width = self.number_projection[0].shape[0]
        if config["features"] != FEATURE_NAMES:
            raise UsageError(
                f"{self.file} was trained with other features of answers. Train it again with `hf-mwp train-verifier`."
            )
        if len(self.symbols) != len(self.symbol_ids) + 1 or self.width % self.num_heads:
            raise damaged(f"{self.file} has a configuration that does not fit its weights")

    @classmethod
    def from_pretrained(cls, name_or_path: str | PathLike, **kwargs) -> AnswerVerifier | None:
        """Load the verifier of a solver's folder or Hub repository, `None` if there is none. `kwargs` (`revision`,
        `token`, ...) are passed to the download. Raises `UsageError` if its file is damaged."""
        path = find_beside(name_or_path, cls.file_name, **kwargs)
        return None if path is None else cls(path)

    def save_pretrained(self, save_directory: str | PathLike) -> None:
        """Copy the verifier's file to a folder, such as the model folder."""
        target = Path(save_directory) / self.file_name
        if not target.exists() or not target.samefile(self.file):
            shutil.copyfile(self.file, target)

    def __call__(
        self,
        states: np.ndarray,
        number_positions: Sequence[int],
        numbers: Sequence[float],
        equations: Sequence[Expression],
        rows: Sequence[Sequence[float]],
    ) -> list[float]:
        """
        Return the score of each equation, higher for one that fits the text better.

        Args:
            states (`np.ndarray` of shape `(S, H)`): The solver's hidden states of the text.
            number_positions (`Sequence[int]`): Index of the token of each number.
            numbers (`Sequence[float]`): Values of the numbers.
            equations (`Sequence[Expression]`): Trees over number slots.
            rows (`Sequence[Sequence[float]]`): Features of their answers, see [`FEATURES`].

        Returns:
            `list[float]`: The scores, NaN for an equation that the verifier cannot read.

        Raises:
            UsageError: The states have a different width than those of the verifier's solver.
        """
        width = states.shape[-1]
        if width != self.encoder_width:
            raise UsageError(
                f"The verifier {self.file} reads hidden states of width {self.encoder_width}, but those of this "
                f"solver have width {width}. Use the re-ranker in the solver's own folder."
            )
        scores = [float("nan")] * len(equations)
        readable = []
        sequences = []
        features = []
        for index, equation in enumerate(equations):
            nodes = read_equation(equation, numbers, self.symbol_ids)
            if nodes is not None:
                readable.append(index)
                sequences.append(nodes)
                features.append([rows[index][place] for place in FEATURE_INDICES])
        if sequences:
            scaled = np.array(features, np.float32) / self.feature_scale
            computed = self._compute(states, number_positions, sequences, scaled)
            for index, score in zip(readable, computed, strict=True):
                scores[index] = score
        return scores

    def _compute(
        self,
        states: np.ndarray,
        number_positions: Sequence[int],
        sequences: Sequence[EquationNodes],
        features: np.ndarray,
    ) -> list[float]:
        """Return the scores of equations. Their nodes are the rows of one matrix, and attend to nodes of their own
        equation only."""
        lengths = [len(nodes.symbols) for nodes in sequences]
        equation_of = np.repeat(np.arange(len(sequences)), lengths)
        is_other = equation_of[:, None] != equation_of
        starts = np.cumsum([0, *lengths[:-1]])
        hidden = self._embed(states, number_positions, sequences)
        described = gelu(apply_linear(self.feature_hidden, features))
        hidden[starts] += apply_linear(self.feature_projection, described)
        for layer in self.layers:
            hidden = layer(hidden, states, is_other)
        summary = layer_norm(hidden[starts], self.norm, self.epsilon)
        scores = apply_linear(self.score, gelu(apply_linear(self.hidden, summary)))
        return scores[:, 0].tolist()

    def _embed(
        self, states: np.ndarray, number_positions: Sequence[int], sequences: Sequence[EquationNodes]
    ) -> np.ndarray:
        """Return the embeddings `(n, width)` of all nodes of all equations."""
        number_states = apply_linear(self.number_projection, states[np.array(number_positions)])
        table = np.concatenate([self.symbols, number_states])
        symbols = []
        depths = []
        values = []
        positions = []
        for nodes in sequences:
            symbols += nodes.symbols
            depths += nodes.depths
            values += nodes.values
            positions += range(len(nodes.symbols))
        embeddings = table[symbols] + self.positions[positions] + self.depths[depths]
        return embeddings + apply_linear(self.value_projection, np.array(values, np.float32))


def _read_config(file: Path) -> dict[str, Any]:
    """Return the configuration in the metadata of a verifier's file."""
    try:
        config = json.loads(read_metadata(file).get(CONFIG_KEY, ""))
    except ValueError as error:
        raise damaged(f"{file} has no configuration of a verifier") from error
    return check_fields(config, CONFIG, file)
