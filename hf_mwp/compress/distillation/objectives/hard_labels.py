"""Objective on labels."""

from collections.abc import Mapping
from typing import Any

from torch import Tensor

from hf_mwp.utils.checked_types import checked

from ..features import Features
from .prediction_objective import PredictionObjective


class HardLabels(PredictionObjective):
    """
    Objective on labels, with the student's own loss.

    Args:
        weight (`float`), name (`str`): See [`Objective`].
    """

    needs_labels = True

    @checked
    def __init__(self, weight: float = 1.0, name: str = "hard") -> None:
        super().__init__(name, weight)

    def losses(self, student: Features, teacher: Features, inputs: Mapping[str, Any]) -> dict[str, Tensor]:
        loss = student.get("loss")
        if loss is None:
            names = " and ".join(f"`{name}`" for name in self.kind.labels)
            raise ValueError(
                f"The student computed no loss, so the batch has no labels ({names}). Pass labels, or set "
                "`soft_label_weight=1` to learn only from the teacher, or `prediction_weight=0` to distil only layers."
            )
        loss = loss.mean()
        positions = self.positions(inputs)
        if positions is not None:
            # A mean over no labels is NaN.
            loss = loss.where(positions.any(), 0.0)
        return {self.name: loss}

    def num_items(self, inputs: Mapping[str, Any]) -> dict[str, Tensor | int | None]:
        if self.kind.prediction.row_outputs:
            # The sum of a mean over positions and a mean over rows.
            return dict.fromkeys(self.parts)
        return super().num_items(inputs)
