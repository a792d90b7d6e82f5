"""Arguments of [`PreTrainingTrainer`]."""

from __future__ import annotations

import json
from dataclasses import dataclass, fields

from ...problems.tagging.pos_classes import check_classes
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
    Arguments of [`PreTrainingTrainer`]: all of `TrainingArguments`, and the weights of the loss

    `mlm_loss_weight * mlm + pos_loss_weight * pos`

    as Ming et al. define it (A Compact Model for Mathematics Problem Representations Distilled from BERT, AAAI 2025).
    The fields of [`BaseConfig`] that speak of solvers must stay at their defaults.

    Each field has its `help`; besides:

    Args:
        mlm_probability (`float`, *optional*, defaults to 0.15): BERT's; the paper does not say.
        keyword_weight (`float`, *optional*, defaults to 3.0), number_weight (`float`, *optional*, defaults to 3.0):
            "We pay more attention to the mask of mathematical keywords and numbers" is all that the paper says; 1
            makes no difference.
        mlm_loss_weight (`float`, *optional*, defaults to 1.0): 0 masks nothing and does not score the vocabulary.
        pos_loss_weight (`float`, *optional*, defaults to 5.0):
            "with a 1:5 ratio between the two". With 0 the same tokens are masked as with tagging.
        pos_class_weights (`dict[str, float]`, *optional*):
            The five classes are those that the paper names as important (see [`~problems.pos_classes.TAG_SETS`]). Not
            with `pos_loss_weight=0`.
        validation_fraction (`float`, *optional*, defaults to 0.02):
            Which texts, and their masks, depends on `data_seed` (or `seed`) and the texts alone, so that figures of
            runs on the same corpus compare.

    The paper trains for 150 epochs with batches of 128, Adam, learning rate 1e-5 and weight decay 1e-5. Of these,
    `num_train_epochs=150` would take days on a CPU and 1e-5 is made for weights that are pretrained already, so the
    defaults are `num_train_epochs=6`, `learning_rate=5e-4` and `per_device_train_batch_size=32`, which leaves the
    plateau of word frequencies within an epoch from random weights; `weight_decay=1e-5` is the paper's. To go on from
    a pretrained encoder 1e-4 to 2e-4 is right. `max_grad_norm=1.0` is that of `TrainingArguments` again: the loss is a
    mean. `metric_for_best_model` is `"loss"` if something needs one.

    Raises:
        ValueError: as [`BaseConfig`]; a field that only solvers have, nothing to learn, or an unknown part of speech.
    """

    num_train_epochs: float = setting(6.0, "Times that each text is seen.")
    learning_rate: float = setting(5e-4, "Learning rate: 5e-4 from random weights, 1e-4 to 2e-4 from pretrained ones.")
    weight_decay: float = setting(1e-5, "Weight decay, not of biases and layer norms.")
    per_device_train_batch_size: int = setting(32, "Texts per device and step.")
    max_grad_norm: float = setting(1.0, "Largest norm of the gradient; 0 does not clip.")

    mlm_probability: float = setting(0.15, "Share of the tokens that are masked.")
    keyword_weight: float = setting(3.0, "How much more often mathematical keywords are masked than other tokens.")
    number_weight: float = setting(3.0, "How much more often numbers and quantities are masked than other tokens.")
    mlm_loss_weight: float = setting(1.0, "Weight of masked language modelling; 0 leaves it away.")
    pos_loss_weight: float = setting(
        5.0, "Weight of part-of-speech tagging; 0 leaves it away, and tags only say which words are quantities."
    )
    pos_class_weights: dict | str | None = setting(
        None,
        "Weights of classes of tags in the tagging loss, as JSON: noun, quantity, verb, punctuation, "
        "pronoun; 1 where not given.",
    )
    validation_fraction: float = setting(
        0.02, "Share of the texts held out for evaluation where none are given; 0 for none."
    )

    def __post_init__(self):
        super().__post_init__()
        defaults = {each.name: each.default for each in fields(BaseConfig)}
        given = [name for name in SOLVER_FIELDS if getattr(self, name) != defaults[name]]
        if given:
            raise ValueError(f"`{given[0]}` is for solvers; pretraining has no decoder: leave it away.")
        if not 0 < self.mlm_probability < 1:
            raise ValueError(
                f"`mlm_probability` must be above 0 and below 1, got {self.mlm_probability}; `mlm_loss_weight=0` "
                "leaves masked language modelling away."
            )
        for name in ("keyword_weight", "number_weight"):
            if not getattr(self, name) > 0:
                raise ValueError(f"`{name}` must be greater than 0, got {getattr(self, name)}.")
        for name in ("mlm_loss_weight", "pos_loss_weight"):
            if getattr(self, name) < 0:
                raise ValueError(f"`{name}` must not be negative, got {getattr(self, name)}.")
        if not self.mlm_loss_weight and not self.pos_loss_weight:
            raise ValueError("Nothing to learn: `mlm_loss_weight` and `pos_loss_weight` are both 0.")
        if not 0 <= self.validation_fraction < 1:
            raise ValueError(f"`validation_fraction` must be at least 0 and below 1, got {self.validation_fraction}.")
        if isinstance(self.pos_class_weights, str):
            try:
                self.pos_class_weights = json.loads(self.pos_class_weights)
            except ValueError as error:
                raise ValueError(f"`pos_class_weights` is no JSON: {error}.") from None
        weights = self.pos_class_weights
        if weights is not None:
            if not isinstance(weights, dict):
                raise ValueError(f"`pos_class_weights` takes a mapping of classes to weights, not {weights!r}.")
            if not self.pos_loss_weight:
                raise ValueError(
                    "`pos_class_weights` belong to the tagging loss, which `pos_loss_weight=0` leaves away: leave "
                    "them away too."
                )
            check_classes(weights)
            for name, weight in weights.items():
                if isinstance(weight, bool) or not isinstance(weight, (int, float)) or weight < 0:
                    raise ValueError(
                        f"`pos_class_weights`: {name} must be a number that is not negative, got {weight!r}."
                    )
        if self.dataloader_persistent_workers and self.dataloader_num_workers:
            raise ValueError(
                "`dataloader_persistent_workers` would keep the masks of the first epoch: set it to False, so that "
                "each epoch has masks of its own."
            )
