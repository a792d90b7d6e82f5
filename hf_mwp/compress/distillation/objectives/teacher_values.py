"""Objective on the values of the teacher's outputs."""

from collections.abc import Mapping
from typing import Any

from hf_mwp.compress.losses import HiddenMSELoss
from hf_mwp.utils.checked_types import checked

from ..features import Features
from .soft_labels import SoftLabels


class TeacherValues(SoftLabels):
    """
    Objective that trains the student's outputs to match the values of the teacher's outputs, with their squared
    difference ([`HiddenMSELoss`]). Used for regression, where models have a single output, or for the logits of a
    classifier.

    Args:
        weight (`float`), name (`str`): See [`Objective`].

    References: Sparse Teachers Can Be Dense with Knowledge (EMNLP 2022), for STS-B; Ba and Caruana, Do Deep Nets
    Really Need to be Deep? (2014), for logits
    """

    @checked
    def __init__(self, weight: float = 1.0, name: str = "soft") -> None:
        super().__init__(weight=weight, name=name, loss=HiddenMSELoss())

    def setup(self, student: Features, teacher: Features, inputs: Mapping[str, Any]) -> None:
        super().setup(student, teacher, inputs)
        if not self.kind.prediction.has_values:
            raise ValueError(
                f"The logits of a {self.kind.name} have no values to compare, since some classes (missing symbols, "
                'padding) have none. Use probabilities instead (`SoftLabels`, `prediction_loss="kd"`).'
            )
