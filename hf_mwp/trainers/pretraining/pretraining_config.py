"""Arguments of [`PreTrainingTrainer`]."""

from __future__ import annotations

from dataclasses import dataclass, fields

from ...options.checks import refuse
from ..base_config import BaseConfig, setting


# Fields of `BaseConfig` that speak of solvers alone.
SOLVER_FIELDS = (
    "decoder_learning_rate",
    "decoder_weight_decay",
    "num_beams",
    "max_decode_length",
    "answer_match",
    "write_predictions",
)


@dataclass
class PreTrainingConfig(BaseConfig):
    r"""
    Arguments of [`PreTrainingTrainer`]: those of [`BaseConfig`], but for solvers' ones, and the weights of the loss
    `mlm_loss_weight * mlm + pos_loss_weight * pos` of Ming et al. (A Compact Model for Mathematics Problem
    Representations Distilled from BERT, AAAI 2025), in the paper's ratio of 1:5. Each field is
    described by its `help`.

    The paper says neither `mlm_probability` (BERT's here) nor how much more often keywords and numbers are masked. It
    trains for 150 epochs with batches of 128, learning rate 1e-5 and weight decay 1e-5; the defaults leave the plateau
    of word frequencies within an epoch from random weights. `max_grad_norm=1.0`, because the loss is a mean.

    Raises:
        ValueError: as [`BaseConfig`]; a field that only solvers have, or nothing to learn.
    """

    num_train_epochs: float = setting(6.0, "Times that each text is seen.")
    learning_rate: float = setting(5e-4, "Learning rate: 5e-4 from random weights, 1e-4 to 2e-4 from pretrained ones.")
    weight_decay: float = setting(1e-5, "Weight decay, not of biases and layer norms.")
    per_device_train_batch_size: int = setting(32, "Texts per device and step.")
    max_grad_norm: float = setting(1.0, "Largest norm of the gradient; 0 does not clip.")

    mlm_probability: float = setting(0.15, "Share of the tokens that are masked.")
    keyword_weight: float = setting(3.0, "How much more often mathematical keywords are masked than other tokens.")
    number_weight: float = setting(3.0, "How much more often numbers and quantities are masked than other tokens.")
    mlm_loss_weight: float = setting(1.0, "Weight of masked language modelling; 0 turns it off.")
    pos_loss_weight: float = setting(
        5.0, "Weight of part-of-speech tagging; with 0, tags only say which words are quantities."
    )
    validation_fraction: float = setting(
        0.02, "Share of the texts held out for evaluation where none are given; 0 for none."
    )

    def __post_init__(self):
        super().__post_init__()
        defaults = {each.name: each.default for each in fields(BaseConfig)}
        given = [name for name in SOLVER_FIELDS if getattr(self, name) != defaults[name]]
        refuse(
            {
                f"`{next(iter(given), None)}` is for solvers: leave it out.": given,
                "Nothing to learn: `mlm_loss_weight` and `pos_loss_weight` are both 0.": (
                    not self.mlm_loss_weight and not self.pos_loss_weight
                ),
                "`dataloader_persistent_workers` would keep the masks of the first epoch: set it to False.": (
                    self.dataloader_persistent_workers and self.dataloader_num_workers
                ),
            }
        )
