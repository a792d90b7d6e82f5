"""One number for each attention head and each feed-forward neuron."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pad_sequence

from ...models.architecture import layer_parts
from ...usage_error import UsageError


# What the authors' program adds to a norm; the paper names none.
EPSILON = 1e-7


@dataclass(frozen=True, eq=False)
class UnitScores:
    """
    Scores of the units of an encoder; the lowest are removed first.

    Args:
        heads (`Tensor` of shape `(layers, heads of the largest layer)`):
            float64 on the CPU, NaN where a layer has fewer heads.
        neurons (`Tensor` of shape `(layers, neurons of the largest layer)`): The same of feed-forward neurons.
    """

    heads: Tensor
    neurons: Tensor

    @classmethod
    def random(cls, model: nn.Module, seed: int = 0) -> UnitScores:
        """
        Scores by chance for the units of a model, the same for the same seed: STARK-RAND (Yang et al., section 4.4).
        """
        generator = torch.Generator().manual_seed(seed)
        rows = (
            [torch.rand(count, generator=generator, dtype=torch.float64) for count in kind]
            for kind in count_units(model)
        )
        return cls(*(pad_sequence(kind, batch_first=True, padding_value=torch.nan) for kind in rows))

    def normalized(self) -> UnitScores:
        """Each layer's row divided by its l2 norm + 1e-7 (Yang et al., section 3.2, after Molchanov et al.)."""
        return UnitScores(
            *(each / (each.nan_to_num().norm(dim=1, keepdim=True) + EPSILON) for each in (self.heads, self.neurons))
        )

    def check_fits(self, model: nn.Module) -> None:
        """Raises [`UsageError`] unless these are scores of a model with as many heads and neurons a layer."""
        expected = count_units(model)
        for name, scores, counts in zip(("heads", "neurons"), (self.heads, self.neurons), expected, strict=True):
            scored = scores.isfinite().sum(1).tolist()
            if scored != counts:
                raise UsageError(
                    f"The scores are of {scored} {name} a layer, the model has {counts}: they are another teacher's. "
                    "Measure this one."
                )

    def save(self, path: str | Path) -> None:
        """Writes a safetensors file, whole or not at all."""
        from safetensors.torch import save_file

        path = Path(path)
        path.parent.mkdir(parents=True, exist_ok=True)
        unfinished = path.with_name(path.name + ".part")
        save_file({"heads": self.heads.contiguous(), "neurons": self.neurons.contiguous()}, unfinished)
        unfinished.replace(path)

    @classmethod
    def load(cls, path: str | Path) -> UnitScores:
        """Reads what [`save`] has written; [`UsageError`] if there is no such file or it is damaged."""
        from safetensors import SafetensorError
        from safetensors.torch import load_file

        try:
            return cls(**load_file(path))
        except (OSError, SafetensorError, TypeError) as error:
            raise UsageError(f"{path} holds no scores of heads and neurons ({error}): measure them anew.") from error


def count_units(model: nn.Module) -> tuple[list[int], list[int]]:
    """How many heads and how many neurons each layer of a model's encoder has."""
    parts = layer_parts(model)
    return [each.num_heads for each in parts], [each.num_neurons for each in parts]


__all__ = ["UnitScores", "count_units"]
