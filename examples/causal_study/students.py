"""Students of the study: their widths and what they learn from."""

from dataclasses import dataclass
from itertools import product
from typing import Any


WIDTHS = {"half": 2, "quarter": 4}  # divisors of the teacher's width
LOSSES: dict[str, dict[str, Any]] = {
    "labels": {"soft_label_weight": 0.0, "prediction_weight": 1.0, "hidden_loss": None},
    "none": {"hidden_loss": None},
    "linear": {"hidden_loss": "mse"},
    "cka": {"hidden_loss": "cka"},
}
"""Fields of `CausalLMDistillationConfig` by the name of what is learnt; its other fields have the paper's values."""
TITLES = {
    "labels": "labels only",
    "none": "no hidden states",
    "linear": "linear maps",
    "cka": "CKA",
}
# The arms that each loss is compared with.
COMPARED = {"labels": ("none",), "none": (), "linear": ("none",), "cka": ("none", "linear")}


@dataclass(frozen=True)
class StudentArm:
    """A row of the table: students of one width that learn by one loss."""

    width: str
    loss: str

    @property
    def name(self) -> str:
        """Name of the arm."""
        return f"{self.width}-{self.loss}"

    @property
    def title(self) -> str:
        """First cell of the row."""
        return f"{self.width} width, {TITLES[self.loss]}"

    @property
    def compare_with(self) -> str:
        """Names of the arms to compare with, separated by spaces."""
        names = [f"{self.width}-{loss}" for loss in COMPARED[self.loss]]
        return " ".join(names)

    def hidden_size(self, teacher_hidden_size: int) -> int:
        """Return the width of the students."""
        return teacher_hidden_size // WIDTHS[self.width]


STUDENT_ARMS = [StudentArm(width, loss) for width, loss in product(WIDTHS, LOSSES)]
