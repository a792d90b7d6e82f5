"""Base class of objectives on predictions."""

from collections.abc import Mapping
from typing import Any

from torch import Tensor

from hf_mwp.compress.models.model_kind import CAUSAL, CLASSIFIER, IMAGE_SEGMENTER, kind_of, unwrapped

from ..features import Features
from .objective import Objective


class PredictionObjective(Objective):
    """Base class of objectives on a model's predictions. The loss is averaged over problems for solvers of math word
    problems, over labelled positions (all tokens if there are no labels) for models with logits at each position, and
    over rows for other models (for image segmentation, over the pixels of the logits)."""

    needs_labels = False  # whether rows of a classifier with the label -100 are left out

    def setup(self, student: Features, teacher: Features, inputs: Mapping[str, Any]) -> None:
        logits = student.get("logits")
        self.parts = {self.name: self.weight}
        self.kind = kind_of(student.model, logits)
        if self.kind.has_decoder and inputs.get("labels") is None:
            raise ValueError("Labels are needed to select the predictions of a decoder. Pass `labels`.")
        if self.kind is CAUSAL:
            name = type(unwrapped(student.model)).__name__
            raise ValueError(f"`{name}` is a causal language model. Use the `DistillationTrainer` of TRL.")

    def positions(self, inputs: Mapping[str, Any]) -> Tensor | None:
        """Return the mask `(batch, length)` of the positions whose predictions are compared, or `None` for all."""
        labels = inputs.get("labels")
        if self.kind is IMAGE_SEGMENTER:
            return None
        if self.kind is CLASSIFIER:
            is_class = self.needs_labels and labels is not None and not labels.is_floating_point()
            return labels != -100 if is_class else None
        if labels is None:
            return inputs.get("attention_mask")
        return labels != -100

    def num_items(self, inputs: Mapping[str, Any]) -> dict[str, Tensor | int | None]:
        positions = None if self.kind.is_solver else self.positions(inputs)
        num_items = None
        if positions is not None:
            num_items = positions.sum()
        elif not self.kind.per_position:
            num_items = next(len(values) for values in inputs.values() if isinstance(values, Tensor))
        return dict.fromkeys(self.parts, num_items)
