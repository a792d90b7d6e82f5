"""Arguments of [`StarkTrainer`]."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

from transformers.trainer_utils import IntervalStrategy, SaveStrategy

from ...options.checks import refuse
from ...pruning.sparse_teacher.removed_units import check_sparsity
from ...pruning.sparse_teacher.sparsifier import UnitSparsifier, WeightSparsifier
from ...usage_error import UsageError
from ..base_config import setting
from ..distillation.distillation_config import DistillationConfig


@dataclass
class StarkConfig(DistillationConfig):
    r"""
    Arguments of [`StarkTrainer`]: those of [`DistillationConfig`], with which each student is trained, and of the
    teachers that they learn from. Each field is described by its `help`; see also [`~pruning.measure_scores`],
    [`~pruning.ScoreDensity.sparsity`] and [`~pruning.RemovedUnits.lowest`].

    The loss of a student is `(tau^2 * KL + CE) / 2`, as in the authors' program; the paper has neither the factor nor
    the half (`scale_by_square=False`). A regression needs `prediction_loss="mse"`.

    Defaults are the paper's or its program's, which evaluates more often and has `round_to=8`.

    Raises:
        ValueError: as [`DistillationConfig`]; `sparsities` that do not ascend, or options that exclude each other.
    """

    learning_rate: float = setting(3e-5, "Learning rate; of a solver, that of the encoder.")
    weight_decay: float = setting(0.01, "Weight decay, but for biases and norms.")
    num_train_epochs: float = setting(10.0, "Times that each example is seen by a student.")
    eval_strategy: IntervalStrategy | str = setting("epoch", "When to evaluate on the way.")
    save_strategy: SaveStrategy | str = setting("epoch", "When to save a checkpoint.")
    save_total_limit: int | None = setting(1, "Checkpoints that are kept of a student while it is trained.")
    load_best_model_at_end: bool = setting(True, "Keep the weights of the best evaluation, not the last ones.")
    early_stopping_patience: int | None = setting(
        5, "Stop a student after this many evaluations without an improvement; never if not given."
    )

    temperature: float = setting(2.0, "Softens the probabilities of teacher and student.")
    hidden_loss: str | None = setting(None, "What layers learn, as for distill; nothing if not given.")
    embedding_weight: float = setting(0.0, "Weight of the loss between embedding outputs; 0 for none.")

    sparsities: list[float] = setting(
        [number / 10 for number in range(1, 10)],
        "Shares of the heads and neurons that are removed from teachers, ascending; 0 is the trial student.",
    )
    expressiveness_weight: float = setting(
        0.5, "Weight of a unit's expressiveness against its student-friendliness, from 0 to 1; lambda of the paper."
    )
    auto_sparsity: bool = setting(
        False, "Take the sparsity at the first peak of the density of the heads' scores, in place of sparsities."
    )
    per_example: bool = setting(
        False, "Score by absolute gradients of examples, not of batches, which depend on size and order of batches."
    )
    score_batch_size: int = setting(32, "Examples of a batch while heads and neurons are scored.")
    unstructured: bool = setting(False, "Score single weights and set the lowest to 0, in place of heads and neurons.")
    mask: bool = setting(False, "Mask heads and neurons in place of cutting them: the same outputs, slower.")
    round_to: int | None = setting(None, "Round the neurons that a layer loses to a multiple of this.")
    stages_dir: str | None = setting(
        None, "Folder of trial student, scores and students, which runs may share; stages in output_dir if not given."
    )
    keep_caches: bool = setting(
        False,
        "Keep cached outputs of teachers whose student is finished; those of the whole teacher in a "
        "teacher_cache_dir always stay.",
    )

    def __post_init__(self):
        super().__post_init__()
        for sparsity in self.sparsities:
            check_sparsity(sparsity)
        of_units = [name for name in ("auto_sparsity", "per_example", "mask", "round_to") if getattr(self, name)]
        refuse(
            {
                f"`sparsities` must be at least one, in ascending order, not {self.sparsities}.": (
                    not self.sparsities or any(first >= second for first, second in pairwise(self.sparsities))
                ),
                "`push_to_hub` would push all students: push the chosen one, which `model` is then.": self.push_to_hub,
                f"`{next(iter(of_units), None)}` is of heads and neurons: leave it out, or `unstructured`.": (
                    self.unstructured and of_units
                ),
                "`keep_caches` keeps caches of teachers: set `cache_teacher_outputs`, or leave it out.": (
                    self.keep_caches and not self.cache_teacher_outputs
                ),
            },
            UsageError,
        )

    def make_sparsifier(self) -> UnitSparsifier | WeightSparsifier:
        """Return the pruning granularity."""
        return WeightSparsifier() if self.unstructured else UnitSparsifier(self.mask, self.round_to)
