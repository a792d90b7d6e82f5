"""A student that a sparse teacher has taught."""

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
    A student of [`StarkTrainer`].

    Args:
        sparsity (`float`): Share of its teacher's heads and neurons that are gone; of the trial student 0.
        heads (`tuple[int, ...]`), neurons (`tuple[int, ...]`): Heads and neurons left in its
            teacher, layer by layer.
        teacher_parameters (`int`): Parameters of the whole teacher.
        folder (`Path`): Student, processor, `metrics.json` and `trainer_state.json`; plain `from_pretrained` loads it.
        metrics (`Mapping[str, Any]`): Its evaluation.
        metric (`str`): Which of them students are compared by.
        greater_is_better (`bool`): How.
        model_class (`type`): Class that loads it.
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
        """Load the state of its training, with the log."""
        return TrainerState.load_from_json(str(self.folder / TRAINER_STATE_NAME))
