"""Student that [`StarkTrainer`] has trained."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from transformers import PreTrainedModel, TrainerState
from transformers.trainer import TRAINER_STATE_NAME
from transformers.trainer_utils import TrainOutput


@dataclass(frozen=True)
class StarkStudent:
    """A student trained by [`StarkTrainer`]."""

    sparsity: float  # share of heads and neurons removed from the teacher; 0 for the trial student
    heads: tuple[int, ...]  # number of remaining heads in each layer of the teacher
    neurons: tuple[int, ...]  # number of remaining neurons in each layer of the teacher
    teacher_parameters: int
    folder: Path  # with the student, processor, `metrics.json` and `trainer_state.json`
    metrics: Mapping[str, Any]  # of the student's evaluation
    metric: str  # name of the metric by which students are compared
    greater_is_better: bool
    model_class: type[PreTrainedModel]

    @property
    def value(self) -> float:
        """Value of the metric by which students are compared."""
        return self.metrics[self.metric]

    @property
    def merit(self) -> float:
        """Score to maximise; NaN is the worst value."""
        value = self.value if self.greater_is_better else -self.value
        return -math.inf if math.isnan(value) else value

    def load(self) -> PreTrainedModel:
        """Load the student."""
        return self.model_class.from_pretrained(self.folder)

    def load_state(self) -> TrainerState:
        """Load the trainer state of the student's training, which includes the log."""
        return TrainerState.load_from_json(str(self.folder / TRAINER_STATE_NAME))

    def train_output(self) -> TrainOutput:
        """Return what `Trainer.train` returned for the student, with the sparsity of its teacher as a metric."""
        state = self.load_state()
        summary: dict[str, float] = {}
        for entry in state.log_history:
            if "train_runtime" in entry:
                # A training that was resumed after its end has several.
                summary = entry
        metrics = {name: value for name, value in summary.items() if name != "step"}
        metrics["train_sparsity"] = self.sparsity
        return TrainOutput(state.global_step, summary["train_loss"], metrics)
