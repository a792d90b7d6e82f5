"""Arguments of [`StarkTrainer`]."""

from dataclasses import dataclass
from itertools import pairwise

from transformers.trainer_utils import IntervalStrategy, SaveStrategy

from hf_mwp.compress.pruning.head_bundles import check_unit
from hf_mwp.compress.pruning.removed_units import UnitSparsifier, check_sparsity
from hf_mwp.compress.pruning.unstructured import WeightSparsifier
from hf_mwp.utils.checks import as_list, check_at_least_one, check_weight
from hf_mwp.utils.usage_error import UsageError

from .base_config import setting
from .distillation_config import DistillationConfig


@dataclass
class StarkConfig(DistillationConfig):
    r"""
    Arguments of [`StarkTrainer`]: the arguments of [`DistillationConfig`], used to train each student, and the options
    of the sparse teachers. Each field is described by its `help`; see also [`~pruning.measure_scores`],
    [`~pruning.ScoreDensity.sparsity`] and [`~pruning.RemovedUnits.lowest`].

    The loss of a student is `(tau^2 * KL + CE) / 2`, as in the authors' implementation; the paper has neither the
    factor `tau^2` (`scale_by_square=False`) nor the division by 2. A regression needs `prediction_loss="mse"`.

    The defaults follow the paper or the authors' implementation, which evaluates more often and uses `round_to=8`.

    Raises:
        ValueError: As [`DistillationConfig`].
        UsageError: `sparsities` are not ascending, or options exclude each other.
    """

    learning_rate: float = setting(3e-5, "Learning rate (for a solver: of its encoder).")
    weight_decay: float = setting(0.01, "Weight decay, except for biases and norms.")
    num_train_epochs: float = setting(10.0, "Number of training epochs of a student.")
    eval_strategy: IntervalStrategy | str = setting("epoch", "When to evaluate during training.")
    save_strategy: SaveStrategy | str = setting("epoch", "When to save a checkpoint.")
    save_total_limit: int | None = setting(1, "Maximum number of checkpoints kept while a student is trained.")
    load_best_model_at_end: bool = setting(True, "Keep the weights of the best evaluation, not the last weights.")
    early_stopping_patience: int | None = setting(5, "Evaluations without improvement before a stop; never if none.")

    temperature: float = setting(2.0, "Temperature that softens the probabilities of teacher and student.")
    hidden_loss: str | None = setting(None, "Loss on layers, as for distill; none if not given.")
    embedding_weight: float = setting(0.0, "Weight of the loss between embedding outputs; 0 for none.")

    sparsities: list[float] = setting(
        [number / 10 for number in range(1, 10)],
        "Shares of the heads and neurons that are removed from teachers, ascending; 0 is the trial student.",
    )
    expressiveness_weight: float = setting(0.5, "Weight of expressiveness against student-friendliness (lambda).")
    auto_sparsity: bool = setting(False, "Use the sparsity at the first density peak of head scores, not sparsities.")
    per_example: bool = setting(False, "Score by gradients of examples, which do not depend on batch size and order.")
    score_batch_size: int = setting(32, "Number of examples in a batch when heads and neurons are scored.")
    unstructured: bool = setting(False, "Score single weights, not heads and neurons, and set the lowest to 0.")
    round_to: int | None = setting(None, "Round the number of neurons removed from a layer to a multiple of this.")
    unit: str = setting("group", "Heads removed together with grouped queries: a group, or a query of each group.")
    uniform: bool = setting(False, "Remove equally many heads and neurons of each layer.")
    stages_dir: str | None = setting(None, "Shared folder of students and scores; output_dir/stages if not given.")

    def __post_init__(self):
        super().__post_init__()
        check_at_least_one(self, "score_batch_size", "round_to")
        check_weight(self, "expressiveness_weight")
        check_unit(self.unit)
        self.sparsities = as_list(self.sparsities)
        for sparsity in self.sparsities:
            check_sparsity(sparsity)
        ascends = all(lower < higher for lower, higher in pairwise(self.sparsities))
        if not self.sparsities or not ascends:
            raise UsageError(f"`sparsities` must be a non-empty list in ascending order, got {self.sparsities}.")
        if self.unstructured:
            for name in ("auto_sparsity", "per_example", "round_to", "uniform"):
                if getattr(self, name):
                    raise UsageError(f"`{name}` applies only to heads and neurons. Omit it or `unstructured`.")

    def make_sparsifier(self) -> UnitSparsifier | WeightSparsifier:
        """Return the object that prunes the teacher at the chosen granularity (heads and neurons, or weights)."""
        if self.unstructured:
            return WeightSparsifier()
        return UnitSparsifier(self.round_to, self.unit, self.uniform)
