"""Arguments of [`recursive_distillation`]."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

from transformers import PreTrainedModel

from ...options.checks import check_numbers
from ...pruning import HeadImportance, HeadPruningCallback, RandomImportance, choose_heads
from ...pruning.head_pruning_callback import CALIBRATION_BATCHES
from ..base_config import setting
from ..distillation.distillation_config import DistillationConfig


@dataclass
class RecursiveDistillationConfig(DistillationConfig):
    r"""
    Arguments of [`recursive_distillation`]: those of [`DistillationConfig`], with which each generation is trained, of
    [`HeadPruningCallback`], by which it is pruned, and when to stop. Each field is described by its `help`.

    The loss of a generation is `lambda_1 * (tau^2 * KL + mean over layers of MSE(attention)) + lambda_2 * task`
    (equations 6 and 7 of Yu et al., who do not state the two weights): `soft_label_weight` is `lambda_1`, what is left
    to 1 is `lambda_2`, and unless `hidden_weights` are given, so much is divided among the layers. The paper prunes
    until the last step (`end_fraction=1`), after which nothing recovers.

    Raises:
        ValueError: as [`DistillationConfig`] and [`HeadPruningCallback`]; `ratios` that do not ascend.
    """

    learning_rate: float = setting(5e-5, "Learning rate; of a solver, that of the encoder.")
    temperature: float = setting(2.0, "Softens the probabilities of teacher and student.")
    hidden_loss: str | None = setting(
        "attention", "What layers learn: attention (maps of the heads that are left), as for distill, or none."
    )
    embedding_weight: float = setting(0.0, "Weight of the loss between embedding outputs; 0 for none.")

    ratios: list[float] = setting(
        [0.2, 0.25, 0.3],
        "Share of the first model's heads, rounded down to whole ones, that is gone after each generation; ascending.",
    )
    alpha: float = setting(0.5, "Weight of the heads' norm against their entropy (equation 4).")
    power: float = setting(1.0, "n of equation 5; above 1 most heads go late.")
    num_pruning_steps: int = setting(10, "How often heads are scored and pruned in a generation.")
    end_fraction: float = setting(0.5, "Share of a generation's steps after which all are pruned; the rest recovers.")
    calibration_batches: int = setting(CALIBRATION_BATCHES, "Training batches that heads are scored on.")
    min_heads_per_layer: int = setting(1, "Heads that each layer keeps.")

    max_parameters: int | None = setting(None, "Stop after the first generation of at most so many parameters.")
    least_metric: float | None = setting(
        None, "Stop before the first generation whose metric_for_best_model is worse than this."
    )

    def __post_init__(self):
        super().__post_init__()
        if self.push_to_hub:
            raise ValueError("`push_to_hub` would push all generations: publish the last one with `hf-mwp publish`.")
        ratios = self.ratios
        for ratio in ratios:
            check_numbers(ratios=ratio)
        if not ratios or not all(0 <= ratio < 1 for ratio in ratios) or any(a > b for a, b in pairwise(ratios)):
            raise ValueError(f"`ratios` must be at least 0 and below 1, in ascending order, not {ratios}.")
        # It checks what it is given.
        self.make_callback(0.0)

    def check_model(self, model: PreTrainedModel) -> None:
        """Raise `ValueError` if fewer heads of the model can be pruned than the last ratio says."""
        choose_heads(RandomImportance().scores(model), self.ratios[-1], self.min_heads_per_layer)

    def make_callback(self, max_ratio: float, importance: HeadImportance | None = None) -> HeadPruningCallback:
        """Return the callback that prunes a generation; `max_ratio` is a share of its teacher's heads."""
        names = ("alpha", "power", "num_pruning_steps", "end_fraction", "calibration_batches", "min_heads_per_layer")
        return HeadPruningCallback(max_ratio, importance=importance, **{name: getattr(self, name) for name in names})
