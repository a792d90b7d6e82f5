"""Base class of objectives on predictions."""

from collections.abc import Mapping
from typing import Any

from torch import Tensor

from hf_mwp.compress.models.model_kind import kind_of

from ..features import Features
from .objective import Objective


class PredictionObjective(Objective):
    """Base class of objectives on a model's predictions. The loss is averaged over problems for solvers of math word
    problems, over labelled positions (all tokens if there are no labels) for models with logits at each position, and
    over rows for other models (for image segmentation, over the pixels of the logits)."""

    needs_labels = False  # whether rows of a classifier with the label -100 are left out

    def setup(self, student: Features, teacher: Features, inputs: Mapping[str, Any]) -> None:
        self.parts = {self.name: self.weight}
        self.kind = kind_of(student.model, student.get("logits"))
        self.kind.check_inputs(student.model, inputs)

    def positions(self, inputs: Mapping[str, Any]) -> Tensor | None:
        """Return the mask of the positions or rows whose predictions are compared, or `None` for all."""
        return self.kind.positions(inputs, self.needs_labels)

    def num_items(self, inputs: Mapping[str, Any]) -> dict[str, Tensor | int | None]:
        return dict.fromkeys(self.parts, self.kind.num_items(inputs, self.needs_labels))
