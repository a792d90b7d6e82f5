"""Result of training one student with [`StarkTrainer`]."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from transformers import PreTrainedModel, TrainerState
from transformers.trainer import TRAINER_STATE_NAME


@dataclass(frozen=True)
class StarkStudent:
    """
    A student trained by [`StarkTrainer`].

    Args:
        sparsity (`float`): Share of heads and neurons removed from the teacher; 0 for the trial student.
        heads (`tuple[int, ...]`), neurons (`tuple[int, ...]`):
            Numbers of remaining heads and neurons in each layer of the teacher.
        teacher_parameters (`int`): Number of parameters of the teacher.
        folder (`Path`):
            Folder with the student, processor, `metrics.json` and `trainer_state.json`; `from_pretrained` loads it.
        metrics (`Mapping[str, Any]`): Metrics of the student's evaluation.
        metric (`str`): Name of the metric by which students are compared.
        greater_is_better (`bool`): Whether a higher value of this metric is better.
        model_class (`type`): Class of the student.
    """

    sparsity: float
    heads: tuple[int, ...]
    neurons: tuple[int, ...]
    teacher_parameters: int
    folder: Path
    metrics: Mapping[str, Any]
    metric: str
    greater_is_better: bool
    model_class: type[PreTrainedModel]

    @property
    def value(self) -> float:
        """Value of the metric by which students are compared."""
        return self.metrics[self.metric]

    def load(self) -> PreTrainedModel:
        """Load the student."""
        return self.model_class.from_pretrained(self.folder)

    def load_state(self) -> TrainerState:
        """Load the trainer state of the student's training, which includes the log."""
        return TrainerState.load_from_json(str(self.folder / TRAINER_STATE_NAME))
