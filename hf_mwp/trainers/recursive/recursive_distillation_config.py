"""Arguments of [`recursive_distillation`]."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import pairwise

from transformers import PreTrainedModel

from ...options.checks import check_numbers
from ...pruning import HeadImportance, HeadPruningCallback, RandomImportance, choose_heads
from ...pruning.head_pruning_callback import CALIBRATION_BATCHES
from ..distillation.distillation_config import DistillationConfig


@dataclass
class RecursiveDistillationConfig(DistillationConfig):
    r"""
    Arguments of [`recursive_distillation`]: those of [`DistillationConfig`], with which each generation is trained, of
    [`HeadPruningCallback`], by which it is pruned, and when to stop.

    The loss of a generation is `lambda_1 * (tau^2 * KL + mean over layers of MSE(attention)) + lambda_2 * task`
    (equations 6 and 7 of Yu et al., who do not state the two weights): `soft_label_weight` is `lambda_1`, what is left
    to 1 is `lambda_2`, and unless `hidden_weights` are given, so much is divided among the layers.

    These defaults differ from [`DistillationConfig`]: `temperature=2.0`, `hidden_loss="attention"` and
    `embedding_weight=0.0`, as in equation 7, and `learning_rate=5e-5`, the paper's.

    Each field has its `help`; besides:

    Args:
        ratios (`list[float]`, *optional*, defaults to `[0.2, 0.25, 0.3]`):
            Ascending. Rounded down to whole heads, of those of the model that is given (Algorithm 1, line 5).
        end_fraction (`float`, *optional*, defaults to 0.5):
            The paper prunes until the last step (1.0), after which nothing recovers.

    Raises:
        ValueError: as [`DistillationConfig`] and [`HeadPruningCallback`]; `ratios` that do not ascend.
    """

    learning_rate: float = field(default=5e-5, metadata={"help": "Learning rate; of a solver, that of the encoder."})
    temperature: float = field(default=2.0, metadata={"help": "Softens the probabilities of teacher and student."})
    hidden_loss: str | None = field(
        default="attention",
        metadata={"help": "What layers learn: attention (maps of the heads that are left), as for distill, or none."},
    )
    embedding_weight: float = field(
        default=0.0, metadata={"help": "Weight of the loss between embedding outputs; 0 for none."}
    )

    ratios: list[float] = field(
        default_factory=lambda: [0.2, 0.25, 0.3],
        metadata={"help": "Share of the heads that is gone after each generation."},
    )
    alpha: float = field(
        default=0.5, metadata={"help": "Weight of the heads' norm against their entropy (equation 4)."}
    )
    power: float = field(default=1.0, metadata={"help": "n of equation 5; above 1 most heads go late."})
    num_pruning_steps: int = field(
        default=10, metadata={"help": "How often heads are scored and pruned in a generation."}
    )
    end_fraction: float = field(
        default=0.5, metadata={"help": "Share of a generation's steps after which all are pruned; the rest recovers."}
    )
    calibration_batches: int = field(
        default=CALIBRATION_BATCHES, metadata={"help": "Training batches that heads are scored on."}
    )
    min_heads_per_layer: int = field(default=1, metadata={"help": "Heads that each layer keeps."})

    max_parameters: int | None = field(
        default=None, metadata={"help": "Stop after the first generation of at most so many parameters."}
    )
    least_metric: float | None = field(
        default=None,
        metadata={"help": "Stop before the first generation whose metric_for_best_model is worse than this."},
    )

    def __post_init__(self):
        super().__post_init__()
        ratios = self.ratios
        for ratio in ratios:
            check_numbers(ratios=ratio)
        if not ratios or not all(0 <= ratio < 1 for ratio in ratios) or any(a > b for a, b in pairwise(ratios)):
            raise ValueError(f"`ratios` must be at least 0 and below 1, in ascending order, not {ratios}.")
        # It checks what it is given.
        self.make_callback(0.0)
        if self.max_parameters is not None and self.max_parameters < 1:
            raise ValueError(f"`max_parameters` must be at least 1, not {self.max_parameters}.")

    def check_model(self, model: PreTrainedModel) -> None:
        """Raises `ValueError` for a model of which fewer heads can go than the last ratio says."""
        choose_heads(RandomImportance().scores(model), self.ratios[-1], self.min_heads_per_layer)

    def make_callback(self, max_ratio: float, importance: HeadImportance | None = None) -> HeadPruningCallback:
        """What prunes a generation; `max_ratio` is the share of the heads that its teacher has."""
        return HeadPruningCallback(
            max_ratio=max_ratio,
            alpha=self.alpha,
            power=self.power,
            importance=importance,
            num_pruning_steps=self.num_pruning_steps,
            end_fraction=self.end_fraction,
            calibration_batches=self.calibration_batches,
            min_heads_per_layer=self.min_heads_per_layer,
        )


__all__ = ["RecursiveDistillationConfig"]
