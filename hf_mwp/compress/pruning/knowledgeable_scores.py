"""Knowledgeable scores of a teacher's heads and neurons: expressiveness and student-friendliness."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor, nn
from torch.nn.utils.rnn import pad_sequence

from hf_mwp.compress.models.architecture import count_units
from hf_mwp.utils.checked_types import checked
from hf_mwp.utils.files import writing_weights
from hf_mwp.utils.usage_error import UsageError

from .head_bundles import head_groups


FILE_NAME = "scores.safetensors"
# Added to norms in the authors' implementation; the paper has no such term.
EPSILON = 1e-7


@checked
@dataclass(frozen=True, eq=False)
class UnitScores:
    """
    Scores of an encoder's units; the lowest are removed first.

    Args:
        heads (`Tensor` of shape `(layers, heads of the largest layer)`):
            Scores of heads, float64 on the CPU, with NaN in layers with fewer heads.
        neurons (`Tensor` of shape `(layers, neurons of the largest layer)`): Scores of neurons, in the same form.
        groups (`Tensor` of the shape of `heads`, *optional*):
            Key-value group of each head, -1 in layers with fewer heads, if some heads share keys and values.
    """

    heads: Tensor
    neurons: Tensor
    groups: Tensor | None = None

    @classmethod
    def random(cls, model: nn.Module, seed: int = 0) -> UnitScores:
        """Return random scores for the units of a model: STARK-RAND (Yang et al., section 4.4)."""
        generator = torch.Generator().manual_seed(seed)
        scores = []
        for num_units in count_units(model):
            rows = [torch.rand(size, generator=generator, dtype=torch.float64) for size in num_units]
            scores.append(pad_sequence(rows, batch_first=True, padding_value=torch.nan))
        return cls(*scores, groups=shared_groups(model))

    def normalized(self) -> UnitScores:
        """Divide the scores of each layer by their l2 norm + 1e-7 (Yang et al., section 3.2)."""
        return UnitScores(_normalized(self.heads), _normalized(self.neurons), self.groups)

    def check_fits(self, model: nn.Module) -> None:
        """Raise [`UsageError`] unless the scores match the numbers of heads and neurons in each layer of a model."""
        for name, counts in zip(("heads", "neurons"), count_units(model), strict=True):
            scores = getattr(self, name)
            scored = scores.isfinite().sum(1).tolist()
            if scored != counts:
                raise UsageError(f"There are scores for {scored} {name} per layer, but the model has {counts}.")


def shared_groups(model: nn.Module) -> Tensor | None:
    """Return the `groups` of [`UnitScores`] for a model, or `None` if no heads share keys and values."""
    groups = [torch.tensor(layer_groups) for layer_groups in head_groups(model)]
    if all(len(layer_groups.unique()) == len(layer_groups) for layer_groups in groups):
        return None
    return pad_sequence(groups, batch_first=True, padding_value=-1)


def _normalized(scores: Tensor) -> Tensor:
    return scores / (scores.nan_to_num().norm(dim=1, keepdim=True) + EPSILON)


@checked
@dataclass(frozen=True, eq=False)
class KnowledgeableScores:
    """
    Expressiveness `P` (effect on the teacher's loss) and student-friendliness `Q` (effect on the distillation loss) of
    a teacher's heads and neurons. They are stored separately and before normalisation, so that one measurement is
    enough for all trade-offs and densities.

    Args:
        expressiveness ([`UnitScores`], *optional*): `P`, gradients of the teacher's loss on its task.
        friendliness ([`UnitScores`], *optional*): `Q`, gradients of the distillation loss to a trial student.
        about (`Mapping[str, Any]`, *optional*): Settings of the measurement, as JSON values.

    References:
        Yang et al., "Sparse Teachers Can Be Dense with Knowledge" (EMNLP 2022), section 3.2.

    Example:
        >>> scores = measure_scores(teacher, batches, student=trial).combined(0.5)
        >>> for sparsity in (0.1, 0.5, 0.9):
        ...     sparse = cut_teacher(teacher, RemovedUnits.lowest(scores, sparsity))
    """

    expressiveness: UnitScores | None = None
    friendliness: UnitScores | None = None
    about: Mapping[str, Any] = field(default_factory=dict)

    def combined(self, expressiveness_weight: float = 0.5) -> UnitScores:
        """Return `I = λ P + (1 - λ) Q` of the normalised scores (section 3.2) for the `expressiveness_weight` λ: 0
        uses only student-friendliness, 1 only expressiveness (the score for pruning students). Raises `UsageError` if
        λ is outside `[0, 1]`, or a needed score was not measured."""
        if not 0 <= expressiveness_weight <= 1:
            raise UsageError(f"`expressiveness_weight` (λ) must be in the range 0 to 1, got {expressiveness_weight}.")
        heads = 0
        neurons = 0
        groups = None
        weighted_scores = (
            (self.expressiveness, expressiveness_weight),
            (self.friendliness, 1 - expressiveness_weight),
        )
        for scores, weight in weighted_scores:
            if weight:
                if scores is None:
                    raise UsageError(
                        f"An `expressiveness_weight` of {expressiveness_weight} needs scores of expressiveness or "
                        "student-friendliness that were not measured."
                    )
                normalized = scores.normalized()
                heads = heads + weight * normalized.heads
                neurons = neurons + weight * normalized.neurons
                groups = normalized.groups
        return UnitScores(heads, neurons, groups)

    def save(self, folder: str | Path) -> None:
        """Write measured scores to `scores.safetensors`, with `about` as metadata."""
        tensors = {}
        for name in ("expressiveness", "friendliness"):
            scores = getattr(self, name)
            if scores is not None:
                tensors[f"{name}.heads"] = scores.heads.contiguous()
                tensors[f"{name}.neurons"] = scores.neurons.contiguous()
                if scores.groups is not None:
                    # Both scores may have the same tensor, which a file cannot contain twice.
                    tensors[f"{name}.groups"] = scores.groups.clone()
        with writing_weights(folder):
            save_file(tensors, Path(folder) / FILE_NAME, {"about": json.dumps(dict(self.about))})

    @classmethod
    def load(cls, folder: str | Path) -> KnowledgeableScores:
        """Load scores from a folder written by [`save`]. Raises `UsageError` if they are missing or damaged."""
        path = Path(folder) / FILE_NAME
        tensors = {}
        try:
            with safe_open(path, "pt") as file:
                for key in file.keys():
                    name, unit = key.split(".")
                    tensors.setdefault(name, {})[unit] = file.get_tensor(key)
                metadata = json.loads(file.metadata()["about"])
            scores = {name: UnitScores(**units) for name, units in tensors.items()}
            return cls(**scores, about=metadata)
        except (OSError, ValueError, SafetensorError, TypeError) as error:
            raise UsageError(f"{path} is missing or damaged ({error}). Measure the scores again.") from error
