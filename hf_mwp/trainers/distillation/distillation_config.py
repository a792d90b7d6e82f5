"""Arguments of [`DistillationTrainer`]."""

from __future__ import annotations

import math
import sys
from dataclasses import dataclass
from functools import partial
from typing import Any

from ...distillation.layer_mapping import STRATEGIES, map_layers
from ...distillation.objectives import (
    DKD,
    FSP,
    PKD,
    AttentionMaps,
    AttentionRelations,
    ContextRelations,
    HiddenStates,
    SoftLabels,
    TeacherValues,
)
from ...losses import AttentionMSELoss, CKALoss, CosineLoss, GramLoss, NSTLoss, ProcrustesLoss
from ...losses.logit_distillation_loss import DIRECTIONS
from ...options.checks import refuse
from ..base_config import BaseConfig, setting


# Names that `prediction_loss` and `hidden_loss` may have; in Python, objectives may be given to the trainer instead.
PREDICTION_LOSSES = {"kd": SoftLabels, "dkd": DKD, "mse": TeacherValues}
HIDDEN_LOSSES = {
    "mse": HiddenStates,
    "attention": AttentionMaps,
    "attention_mean": partial(AttentionMaps, AttentionMSELoss(heads="mean")),
    "fsp": FSP,
    "nst": partial(HiddenStates, NSTLoss()),
    "cka": partial(HiddenStates, CKALoss()),
    "cosine": partial(HiddenStates, CosineLoss()),
    "procrustes": partial(HiddenStates, ProcrustesLoss()),
    "gram": partial(HiddenStates, GramLoss()),
    "pkd": PKD,
    "ckd": ContextRelations,
    "minilm": AttentionRelations,
}


@dataclass
class DistillationConfig(BaseConfig):
    r"""
    Arguments of [`DistillationTrainer`]: those of [`BaseConfig`], and the weights of the loss

    `prediction_weight * (soft_label_weight * soft + (1 - soft_label_weight) * hard)
    + embedding_weight * embedding + sum_n hidden_weights[n] * hidden_n`

    of Ming et al. (A Compact Model for Mathematics Problem Representations Distilled from BERT, AAAI 2025), with the
    paper's values. Each field is described by its `help`; losses by `prediction_loss` and `hidden_loss`:

    - `"kd"`: [`~objectives.SoftLabels`]. With `scale_by_square`, as Hinton et al. have it, gradients keep their size;
      the paper's formula has no such factor, and at its temperature the soft part then is 16 times smaller.
    - `"dkd"`: [`~objectives.DKD`], which needs labels. `"mse"`: [`~objectives.TeacherValues`], for regression.
    - `"mse"`: [`~objectives.HiddenStates`], the best of Ming et al.'s table 6. `"attention"`, head by head, or
      `"attention_mean"`: [`~objectives.AttentionMaps`], which need `attn_implementation="eager"`. `"fsp"`:
      [`~objectives.FSP`]. `"nst"`: [`NSTLoss`]. States of any width, without a projection: `"cka"` ([`CKALoss`]),
      `"procrustes"`, `"gram"`; `"cosine"`: [`CosineLoss`]. `"pkd"`: [`~objectives.PKD`]. `"ckd"`:
      [`~objectives.ContextRelations`]. `"minilm"`: [`~objectives.AttentionRelations`], where MiniLM compares the last
      pair of layers alone (`layer_mapping="3:12"`). Several are joined by `+` and logged under their names.

    A cache of the teacher's outputs ([`~distillation.TeacherCache`]) is for rows and collators that do not change from
    epoch to epoch. Runs may share a `teacher_cache_dir`.

    `metric_for_best_model` is `"answer_accuracy"` for solvers, `"loss"` for other models, if not given.

    Raises:
        ValueError: as [`BaseConfig`]; an unknown loss, or a layer mapping that is none.
    """

    learning_rate: float = setting(1e-4, "Learning rate; of a solver, that of the encoder.")
    decoder_learning_rate: float | None = setting(
        1e-3, "Learning rate of a solver's decoder; that of the encoder if None."
    )
    per_device_train_batch_size: int = setting(32, "Examples per device and step.")

    temperature: float = setting(4.0, "Softens the probabilities of teacher and student.")
    soft_label_weight: float = setting(
        0.5, "Share of the teacher's probabilities in the prediction loss; the rest is the labels' (lambda)."
    )
    scale_by_square: bool = setting(
        True, "Multiply the loss on the teacher's probabilities by the squared temperature."
    )
    prediction_loss: str = setting(
        "kd",
        "kd, the teacher's probabilities, dkd, the right class apart from the others, or mse, its outputs themselves.",
        choices=list(PREDICTION_LOSSES),
    )
    kl_direction: str = setting(
        "forward",
        "Divergence of kd: forward, KL(teacher || student), reverse, jsd (Jensen-Shannon), or skew, from the teacher "
        "to a mixture of both.",
        choices=list(DIRECTIONS),
    )
    skew_alpha: float = setting(0.1, "Share of the teacher in the mixture of skew.")
    prediction_weight: float = setting(1.0, "Weight of the prediction loss, soft and hard labels together.")

    hidden_loss: str | None = setting(
        "mse",
        "Loss on layers: mse (hidden states through linear maps), cka, cosine, procrustes, gram, attention, "
        "attention_mean, fsp, nst, pkd, ckd, minilm, several joined by +, or none.",
    )
    pool_statistics: bool = setting(False, "Compute cka over all batches and processes of a step at once.")
    layer_mapping: str = setting(
        "uniform",
        "uniform, alternating (with the embedding outputs), first, last, or pairs student:teacher such as "
        "1:4,2:8,3:12 (0 is the embedding output).",
    )
    decoder_layer_mapping: str | None = setting(
        None,
        "Layer mapping of the decoder of a sequence-to-sequence model, or none; if not given, layer_mapping in "
        "Seq2SeqDistillationConfig, else none. 1:1 compares the contexts of a solver that judges candidates.",
    )
    decoder_mask: str = setting(
        "labels",
        "Decoder states that are compared: those that predict labels, or shifted, those that read them.",
        choices=["labels", "shifted"],
    )
    hidden_weights: list[float] | None = setting(
        None,
        "Weight of each pair of the layer mapping; 1.0 each if not given, of mse on three uniform pairs 1.0 0.9 1.0.",
    )
    embedding_weight: float = setting(1.0, "Weight of the loss between embedding outputs; 0 for none.")
    use_bottlenecks: bool = setting(True, "Take narrow states of the teacher's bottleneck networks as targets.")
    shared_projection: bool = setting(
        False, "One linear map with bias for all compared states, also of equal widths; else one for each pair."
    )
    projection_learning_rate: float | None = setting(
        1e-3, "Learning rate of the linear maps between different widths; `learning_rate` if None."
    )

    cache_teacher_outputs: bool | None = setting(
        None, "Run the teacher once and keep its outputs on disk; it is run in every epoch if not given."
    )
    teacher_cache_dir: str | None = setting(
        None, "Folder of teacher caches; teacher_cache in output_dir if not given."
    )
    cache_top_k: int | None = setting(
        None, "Classes kept per position where there are more; the others share the rest. All if None."
    )

    @property
    def mappings(self) -> dict[str, str]:
        """Return the layer mapping of each stack whose states are compared."""
        decoder = self.decoder_layer_mapping or "none"
        return {"encoder": self.layer_mapping} | ({} if decoder == "none" else {"decoder": decoder})

    def __post_init__(self):
        super().__post_init__()
        for mapping in self.mappings.values():
            if mapping not in STRATEGIES:
                # What the models have is not known yet: of so many layers each pair that can be read is one.
                map_layers(mapping, sys.maxsize, sys.maxsize)
        if self.hidden_loss == "none":
            self.hidden_loss = None
        names = [] if self.hidden_loss is None else str(self.hidden_loss).split("+")
        cached = [name for name in ("teacher_cache_dir", "cache_top_k") if getattr(self, name) is not None]
        refuse(
            {
                f"`{cached and cached[0]}` is for a teacher cache: set `cache_teacher_outputs`, or leave it out.": (
                    cached and self.cache_teacher_outputs is None
                ),
                '`kl_direction` is for `prediction_loss="kd"`: leave it out.': (
                    self.kl_direction != "forward" and self.prediction_loss != "kd"
                ),
                f"`hidden_loss` must be one of {list(HIDDEN_LOSSES)}, several joined by +, or None, got "
                f"{self.hidden_loss!r}.": not {*names} <= {*HIDDEN_LOSSES} or len({*names}) < len(names),
                '`pool_statistics` is for `hidden_loss="cka"`: leave it out.': (
                    self.pool_statistics and "cka" not in names
                ),
                f"`hidden_weights` must be a list of numbers from 0 on, got {self.hidden_weights!r}.": (
                    self.hidden_weights is not None and not _is_list_of_weights(self.hidden_weights)
                ),
                "`label_smoothing_factor` is not used in distillation: set it to 0.": self.label_smoothing_factor,
            }
        )
        self.cache_teacher_outputs = bool(self.cache_teacher_outputs)


def _is_list_of_weights(value: Any) -> bool:
    numbers = isinstance(value, list | tuple) and not any(isinstance(each, bool | str) for each in value)
    return numbers and all(0 <= each < math.inf for each in value)
