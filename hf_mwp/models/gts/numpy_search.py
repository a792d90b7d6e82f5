"""Search for a single problem on a CPU by the NumPy runtime, which needs a tenth of the operator calls."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor, nn

from ...runtime.tree_search import TreeDecoder
from ..solver import SolveOutput


class LiveWeights:
    """Replacement of [`~runtime.weights.Weights`] for a decoder, sharing the memory of its parameters."""

    def __init__(self, decoder: nn.Module) -> None:
        self.decoder = decoder

    def __getitem__(self, name: str) -> np.ndarray:
        return self.decoder.get_parameter(name.removeprefix("decoder.")).detach().numpy()

    def linear(self, prefix: str, bias: bool = True) -> tuple[np.ndarray, np.ndarray | float]:
        return self[f"{prefix}.weight"].T, self[f"{prefix}.bias"] if bias else 0.0


def uses_numpy(decoder: nn.Module, states: Tensor) -> bool:
    """
    Return whether hidden states `(B, S, H)` belong to one problem, on a CPU and in single precision, and the decoder
    has only its own modules: the search reads their weights, and would ignore adapters of peft.
    """
    simple = states.device.type == "cpu" and states.dtype == torch.float32
    if not simple or len(states) != 1 or torch.is_autocast_enabled("cpu"):
        return False
    return all(type(each).__module__.startswith(("torch.nn.modules.", "hf_mwp.")) for each in decoder.modules())


def search_in_numpy(
    decoder: nn.Module,
    states: Tensor,
    attention_mask: Tensor | None,
    number_positions: Tensor | None,
    num_beams: int,
    max_length: int,
    num_return_sequences: int,
) -> SolveOutput:
    """Decode one problem; for the arguments, see `GTSDecoder.generate`."""
    valid = states[0] if attention_mask is None else states[0][attention_mask[0].bool()]
    positions = [] if number_positions is None else number_positions[0].tolist()
    search = TreeDecoder(LiveWeights(decoder), vars(decoder.config))
    trees = search.search(valid.detach().numpy(), positions, num_beams, num_return_sequences, max_length)
    return SolveOutput.of([trees], num_return_sequences, "cpu")
