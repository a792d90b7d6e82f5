"""Arguments of [`recursive_distillation`]."""

from dataclasses import dataclass
from itertools import pairwise

from transformers import PreTrainedModel

from hf_mwp.compress.pruning import HeadImportance, HeadPruningCallback, RandomImportance, head_groups
from hf_mwp.compress.pruning.head_choice import check_ratio, fewest_heads, whole_heads
from hf_mwp.compress.pruning.head_pruning_callback import CALIBRATION_BATCH_SIZE, CALIBRATION_EXAMPLES
from hf_mwp.utils.checks import as_list, check_at_least_one

from .base_config import setting
from .distillation_config import DistillationConfig


@dataclass
class RecursiveDistillationConfig(DistillationConfig):
    r"""
    Arguments of [`recursive_distillation`]: the arguments of [`DistillationConfig`] (training of each generation) and
    [`HeadPruningCallback`] (pruning), and the conditions to stop. Each field is described by its `help`.

    The loss of a generation is `lambda_1 * (tau^2 * KL + mean over layers of MSE(attention)) + lambda_2 * task`
    (equations 6 and 7 of Yu et al., Efficient Mathematical Reasoning Models via Dynamic Pruning and Knowledge
    Distillation; the paper does not state the two weights). `lambda_1` is `soft_label_weight`, `lambda_2` is
    `1 - soft_label_weight`; `lambda_1` is divided among the layers unless `hidden_weights` are given. The paper prunes
    until the last step (`end_fraction=1`), which leaves no steps to recover, and trains 30 epochs with
    `weight_decay=0.01`.

    Raises:
        ValueError: As [`DistillationConfig`] and [`HeadPruningCallback`]; `ratios` are not ascending.
    """

    learning_rate: float = setting(5e-5, "Learning rate (for a solver: of its encoder).")
    temperature: float = setting(2.0, "Temperature that softens the probabilities of teacher and student.")
    hidden_loss: str | None = setting("attention", "Loss on layers: attention (of remaining heads) or as for distill.")
    embedding_weight: float = setting(0.0, "Weight of the loss between embedding outputs; 0 for none.")

    ratios: list[float] = setting(
        [0.2, 0.25, 0.3],
        "Ascending shares of the first model's heads removed by each generation; the number is rounded down.",
    )
    alpha: float = setting(0.5, "Weight of the heads' norm against their entropy (equation 4).")
    power: float = setting(1.0, "n of equation 5; above 1 most heads are pruned late.")
    num_pruning_steps: int = setting(10, "Number of times that heads are scored and pruned in a generation.")
    end_fraction: float = setting(0.5, "Share of a generation's steps in which heads are pruned; the rest recovers.")
    calibration_examples: int = setting(CALIBRATION_EXAMPLES, "Number of training examples on which heads are scored.")
    calibration_batch_size: int = setting(CALIBRATION_BATCH_SIZE, "Number of these examples that are scored at once.")
    min_heads_per_layer: int = setting(1, "Minimum number of heads that remain in a layer.")
    unit: str = setting("group", "Heads pruned together with grouped queries: a group, or a query of each group.")
    uniform: bool = setting(False, "Prune equally many heads of each layer.")

    max_parameters: int | None = setting(None, "Stop after the first generation with at most this many parameters.")
    least_metric: float | None = setting(None, "Stop before the first generation with a worse metric_for_best_model.")

    def __post_init__(self):
        super().__post_init__()
        check_at_least_one(self, "max_parameters")
        if self.push_to_hub:
            raise ValueError("`push_to_hub` would push all generations. Publish the last one with `hf-mwp publish`.")
        self.ratios = as_list(self.ratios)
        are_shares = all(0 <= ratio < 1 for ratio in self.ratios)
        ascends = not any(first > second for first, second in pairwise(self.ratios))
        if not self.ratios or not are_shares or not ascends:
            raise ValueError(f"`ratios` must be at least 0 and below 1, in ascending order, got {self.ratios}.")
        # The callback checks its arguments.
        self.make_callback(0.0)

    def check_model(self, model: PreTrainedModel) -> None:
        """Raise `ValueError` if the last ratio requires more heads to be pruned than the model allows, or a ratio is
        less than the heads that are pruned together."""
        scores = RandomImportance().scores(model)
        for ratio in self.ratios:
            check_ratio(
                scores,
                ratio,
                min_heads_per_layer=self.min_heads_per_layer,
                groups=head_groups(model),
                unit=self.unit,
                uniform=self.uniform,
            )

    def num_pruned(self, model: PreTrainedModel, ratio: float) -> int:
        """Return the number of the model's heads for a ratio, rounded down to heads that are pruned together."""
        groups = head_groups(model)
        num_heads = whole_heads(ratio, sum(map(len, groups)))
        return num_heads - num_heads % fewest_heads(groups, self.unit, self.uniform)

    def make_callback(self, max_ratio: float, importance: HeadImportance | None = None) -> HeadPruningCallback:
        """Return the callback that prunes a generation; `max_ratio` is the share of the teacher's heads to prune."""
        return HeadPruningCallback(
            max_ratio,
            importance=importance,
            alpha=self.alpha,
            power=self.power,
            num_pruning_steps=self.num_pruning_steps,
            end_fraction=self.end_fraction,
            min_heads_per_layer=self.min_heads_per_layer,
            calibration_examples=self.calibration_examples,
            calibration_batch_size=self.calibration_batch_size,
            unit=self.unit,
            uniform=self.uniform,
        )
