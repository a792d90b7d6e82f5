"""Arguments of [`PreTrainingTrainer`]."""

from dataclasses import dataclass

from hf_mwp.compress.trainers.base_config import BaseConfig, setting
from hf_mwp.utils.checks import check_not_negative, check_positive, check_share


@dataclass
class PreTrainingConfig(BaseConfig):
    r"""
    Arguments of [`PreTrainingTrainer`]: the arguments of [`BaseConfig`] and the weights of the loss
    `mlm_loss_weight * mlm + pos_loss_weight * pos` of Ming et al. (A Compact Model for Mathematics Problem
    Representations Distilled from BERT, AAAI 2025), with the paper's ratio of 1:5.

    The paper does not state `mlm_probability` (the default is BERT's) nor how much more often keywords and numbers are
    masked. It trains for 150 epochs with batches of 128, learning rate 1e-5 and weight decay 1e-5. With the defaults,
    training from random weights gets past the plateau of predicting word frequencies within an epoch. `max_grad_norm`
    is 1.0, because the loss is a mean.

    Raises:
        ValueError: As [`BaseConfig`]; both loss weights are 0.
    """

    num_train_epochs: float = setting(6.0, "Number of training epochs.")
    learning_rate: float = setting(5e-4, "Learning rate: 5e-4 from random, 1e-4 to 2e-4 from pretrained weights.")
    weight_decay: float = setting(1e-5, "Weight decay, except for biases and layer norms.")
    per_device_train_batch_size: int = setting(32, "Texts per device and step.")
    max_grad_norm: float = setting(1.0, "Maximum gradient norm; 0 turns clipping off.")

    mlm_probability: float = setting(0.15, "Share of the tokens that are masked.")
    keyword_weight: float = setting(3.0, "Masking rate of mathematical keywords, relative to other tokens.")
    number_weight: float = setting(3.0, "Masking rate of numbers and quantities, relative to other tokens.")
    mlm_loss_weight: float = setting(1.0, "Weight of masked language modelling; 0 turns it off.")
    pos_loss_weight: float = setting(5.0, "Weight of part-of-speech tagging; with 0, tags only find quantities.")
    validation_fraction: float = setting(0.02, "Share of texts held out if no evaluation texts are given; 0 for none.")

    def __post_init__(self):
        super().__post_init__()
        check_positive(self, "keyword_weight", "number_weight")
        check_not_negative(self, "mlm_loss_weight", "pos_loss_weight")
        check_share(self, "validation_fraction")
        if not 0 < self.mlm_probability < 1:
            raise ValueError(f"`mlm_probability` must be above 0 and below 1, got {self.mlm_probability}.")
        if self.label_smoothing_factor:
            raise ValueError("`label_smoothing_factor` is not used in pretraining. Set it to 0.")
        if not self.mlm_loss_weight and not self.pos_loss_weight:
            raise ValueError("`mlm_loss_weight` and `pos_loss_weight` are both 0. Set at least one above 0.")
        if self.dataloader_persistent_workers and self.dataloader_num_workers:
            raise ValueError("`dataloader_persistent_workers` would keep the masks of the first epoch. Set False.")
