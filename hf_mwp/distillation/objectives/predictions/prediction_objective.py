"""Base class of objectives on predictions."""

from collections.abc import Mapping
from typing import Any

from torch import Tensor

from ....models.model_kind import CLASSIFIER, kind_of
from ...features import Features
from ...masks import label_mask, label_offset
from ..objective import Objective


class PredictionObjective(Objective):
    """
    An objective on what a model finally says: of solvers of math word problems a mean over problems, of models with
    logits for each position one over the positions with labels (over the tokens where there are no labels), of others
    one over rows.
    """

    def setup(self, student: Features, teacher: Features, inputs: Mapping[str, Any]) -> None:
        logits = student.get("logits")
        self.parts = {self.name: self.weight}
        self.kind = kind_of(student.model, logits)
        if self.kind.has_decoder and inputs.get("labels") is None:
            raise ValueError(
                "Nobody can tell which predictions of a decoder count in rows without labels: give `labels`."
            )
        self.offset = self._find_offset(student, inputs) if self.kind.per_position else 0

    def _find_offset(self, student: Features, inputs: Mapping[str, Any]) -> int:
        return label_offset(student.model, inputs)

    def positions(self, inputs: Mapping[str, Any]) -> Tensor | None:
        """The positions `(batch, length)` that count where each has a prediction; `None` for all."""
        if self.kind is CLASSIFIER:
            return None
        if inputs.get("labels") is None:
            return inputs.get("attention_mask")
        return label_mask(inputs, (), None, self.offset)

    def num_items(self, inputs: Mapping[str, Any]) -> dict[str, Tensor | int | None]:
        if not self.kind.per_position:
            rows = next(len(each) for each in inputs.values() if isinstance(each, Tensor))
            return dict.fromkeys(self.parts, rows)
        positions = self.positions(inputs)
        return dict.fromkeys(self.parts, None if positions is None else positions.sum())
