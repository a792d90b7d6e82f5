"""Arguments of [`DistillationTrainer`]."""

import math
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from transformers import PreTrainedModel

from hf_mwp.compress.distillation import objectives
from hf_mwp.compress.distillation.layer_mapping import STRATEGIES, map_layers
from hf_mwp.compress.losses import AttentionMSELoss, CKALoss, CosineLoss, GramLoss, NSTLoss, ProcrustesLoss
from hf_mwp.compress.losses.logit_distillation_loss import DIRECTIONS
from hf_mwp.compress.models.model_outputs import set_attention
from hf_mwp.utils.checks import check_not_negative, check_positive, check_share, check_weight

from .base_config import BaseConfig, setting


# Values of `prediction_loss` and `hidden_loss`; in Python, objectives can be passed to the trainer instead.
PREDICTION_LOSSES = {"kd": objectives.SoftLabels, "dkd": objectives.DKD, "mse": objectives.TeacherValues}
HIDDEN_LOSSES = {
    "mse": objectives.HiddenStates,
    "attention": objectives.AttentionMaps,
    "attention_mean": partial(objectives.AttentionMaps, AttentionMSELoss(heads="mean")),
    "fsp": objectives.FSP,
    "nst": partial(objectives.HiddenStates, NSTLoss()),
    "cka": partial(objectives.HiddenStates, CKALoss()),
    "cosine": partial(objectives.HiddenStates, CosineLoss()),
    "procrustes": partial(objectives.HiddenStates, ProcrustesLoss()),
    "gram": partial(objectives.HiddenStates, GramLoss()),
    "pkd": objectives.PKD,
    "ckd": objectives.ContextRelations,
    "minilm": objectives.AttentionRelations,
}


@dataclass
class DistillationConfig(BaseConfig):
    r"""
    Arguments of [`DistillationTrainer`]: the arguments of [`BaseConfig`] and the weights of the loss

    `prediction_weight * (soft_label_weight * soft + (1 - soft_label_weight) * hard)
    + embedding_weight * embedding + sum_n hidden_weights[n] * hidden_n`

    of Ming et al. (A Compact Model for Mathematics Problem Representations Distilled from BERT, AAAI 2025), with the
    paper's values. Each field is described by its `help`. [`SolverDistillationConfig`] adds the arguments of solvers,
    [`Seq2SeqDistillationConfig`] those of sequence-to-sequence models. Values of `prediction_loss`:

    - `"kd"`: [`~objectives.SoftLabels`]. `scale_by_square` (Hinton et al., Distilling the Knowledge in a Neural
      Network, 2015) keeps the size of gradients. The formula of Ming et al. has no such factor; without it the soft
      part is 16 times smaller at temperature 4.
    - `"dkd"`: [`~objectives.DKD`], which needs labels.
    - `"mse"`: [`~objectives.TeacherValues`], for regression.

    Values of `hidden_loss`; several are joined by `+` and logged under their names:

    - `"mse"`: [`~objectives.HiddenStates`], the best loss in table 6 of Ming et al.
    - `"attention"` (head by head), `"attention_mean"` (mean over heads): [`~objectives.AttentionMaps`], which need
      `attn_implementation="eager"`.
    - `"fsp"`: [`~objectives.FSP`]; `"nst"`: [`NSTLoss`]; `"cosine"`: [`CosineLoss`]; `"pkd"`: [`~objectives.PKD`];
      `"ckd"`: [`~objectives.ContextRelations`].
    - `"cka"` ([`CKALoss`]), `"procrustes"`, `"gram"`: compare states of different widths without a projection.
    - `"minilm"`: [`~objectives.AttentionRelations`]; MiniLM compares only the last layers (`layer_mapping="3:12"`).

    A cache of the teacher's outputs ([`~distillation.TeacherCache`]) requires that rows and batches are the same in
    every epoch. Several runs may share a `teacher_cache_dir`.

    Raises:
        ValueError: As [`BaseConfig`]; a loss is unknown, or a layer mapping is invalid.
    """

    learning_rate: float = setting(1e-4, "Learning rate (for a solver: of its encoder).")
    per_device_train_batch_size: int = setting(32, "Examples per device and step.")
    metric_for_best_model: str | None = setting(
        None, "Metric that chooses the best checkpoint; answer_accuracy for solvers and loss for other models if None."
    )
    temperature: float = setting(4.0, "Temperature that softens the probabilities of teacher and student.")
    soft_label_weight: float = setting(0.5, "Weight of soft against hard labels in the prediction loss (lambda).")
    scale_by_square: bool = setting(True, "Multiply the loss on the teacher's probabilities by temperature squared.")
    prediction_loss: str | None = setting(
        None,
        "kd (the teacher's probabilities), dkd (the right class apart from others) or mse (the teacher's logits); if "
        "not given, kd, and mse for a regression task on the command line.",
        choices=list(PREDICTION_LOSSES),
    )
    kl_direction: str = setting(
        "forward",
        "Divergence of kd: forward (KL(teacher || student)), reverse, jsd (Jensen-Shannon), skew (to a mixture).",
        choices=list(DIRECTIONS),
    )
    skew_alpha: float = setting(0.1, "Share of the teacher in the mixture of skew.")
    prediction_weight: float = setting(1.0, "Weight of the prediction loss, soft and hard labels together.")

    hidden_loss: str | None = setting(
        "mse",
        "Loss on layers: mse (hidden states through linear maps), cka, cosine, procrustes, gram, attention, "
        "attention_mean, fsp, nst, pkd, ckd, minilm, several joined by +, or none.",
    )
    pool_statistics: bool = setting(False, "Compute cka once over all batches and processes of a step.")
    layer_mapping: list[Sequence[int]] | str | None = setting(
        "uniform",
        "uniform, alternating (with the embedding outputs), first, last, or pairs student:teacher such as "
        "1:4,2:8,3:12 (0 is the embedding output).",
    )
    decoder_layer_mapping: list[Sequence[int]] | str | None = setting(
        None,
        "Layer mapping of the decoder of a sequence-to-sequence model, or none; if not given, layer_mapping in "
        "Seq2SeqDistillationConfig, otherwise none. 1:1 compares the contexts of a solver that scores candidates.",
    )
    decoder_mask: str = setting(
        "labels",
        "Compared decoder states: labels (positions that predict labels) or shifted (positions that read labels).",
        choices=["labels", "shifted"],
    )
    hidden_mask: str = setting(
        "tokens",
        "Compared hidden states (of the encoder, if there is a decoder): tokens (all but padding) or labels "
        "(positions that predict labels).",
        choices=["tokens", "labels"],
    )
    hidden_weights: list[float] | None = setting(
        None, "Weight of each pair of the layer mapping; 1.0 if not given (mse on three uniform pairs: 1.0 0.9 1.0)."
    )
    embedding_weight: float = setting(1.0, "Weight of the loss between embedding outputs; 0 for none.")
    use_bottlenecks: bool = setting(True, "Use the narrow states of the teacher's bottleneck networks as targets.")
    shared_projection: bool = setting(
        False, "Use one linear map with bias for all states, even of equal widths; otherwise one map for each pair."
    )
    projection_learning_rate: float | None = setting(1e-3, "Learning rate of linear maps; `learning_rate` if None.")

    cache_teacher_outputs: bool | None = setting(None, "Run the teacher once, not in every epoch, with a disk cache.")
    teacher_cache_dir: str | None = setting(None, "Folder of teacher caches; output_dir/teacher_cache if not given.")
    # Arguments of causal language models, which [`CausalLMDistillationConfig`] has as fields.
    cache_top_k = 64
    max_length = None
    packing = False
    completion_only_loss = None
    compares_decoder = False  # whether `layer_mapping` applies to the decoder if it has no mapping of its own

    @property
    def mappings(self) -> dict[str, str]:
        """Layer mapping of each stack (encoder, decoder) whose states are compared."""
        mappings = {"encoder": self.layer_mapping}
        decoder_mapping = self.decoder_layer_mapping
        if not decoder_mapping and self.compares_decoder:
            decoder_mapping = self.layer_mapping
        if decoder_mapping and decoder_mapping != "none":
            mappings["decoder"] = decoder_mapping
        return mappings

    def __post_init__(self):
        super().__post_init__()
        check_positive(self, "temperature")
        check_not_negative(self, "prediction_weight", "embedding_weight", "projection_learning_rate")
        check_share(self, "skew_alpha")
        check_weight(self, "soft_label_weight")
        if self.label_smoothing_factor:
            raise ValueError("`label_smoothing_factor` does not apply to distillation. Set it to 0.")
        for mapping in self.mappings.values():
            if mapping not in STRATEGIES:
                # The numbers of layers are not known yet, so only the syntax of the pairs is checked.
                map_layers(mapping, sys.maxsize, sys.maxsize)
        if self.hidden_loss == "none":
            self.hidden_loss = None
        names = _names_of_losses(self.hidden_loss)
        if self.teacher_cache_dir is not None and self.cache_teacher_outputs is None:
            raise ValueError("`teacher_cache_dir` needs a teacher cache. Set `cache_teacher_outputs`, or omit it.")
        if self.kl_direction != "forward" and self.prediction_loss not in (None, "kd"):
            raise ValueError('`kl_direction` applies only to `prediction_loss="kd"`. Omit it.')
        if self.skew_alpha != type(self).skew_alpha and self.kl_direction != "skew":
            raise ValueError('`skew_alpha` applies only to `kl_direction="skew"`. Omit it.')
        if self.hidden_weights and not names:
            raise ValueError("`hidden_weights` needs a `hidden_loss`. Omit it.")
        has_unknown = not set(names) <= HIDDEN_LOSSES.keys()
        has_repeated = len(set(names)) < len(names)
        if has_unknown or has_repeated:
            values = f"None or one or several (joined by +) of {list(HIDDEN_LOSSES)}"
            raise ValueError(f"`hidden_loss` must be {values}, got {self.hidden_loss!r}.")
        if self.pool_statistics and "cka" not in names:
            raise ValueError('`pool_statistics` applies only to `hidden_loss="cka"`. Omit it.')
        for weight in self.hidden_weights or ():
            if not 0 <= weight < math.inf:
                raise ValueError(f"`hidden_weights` must be finite and not negative, got {self.hidden_weights!r}.")
        self.cache_teacher_outputs = bool(self.cache_teacher_outputs)


def _names_of_losses(hidden_loss: str | None) -> list[str]:
    return [] if hidden_loss is None else str(hidden_loss).split("+")


def default_objectives(config: DistillationConfig) -> list[objectives.Objective]:
    """Return the objectives for the losses in a config. Losses with weight 0 are left out."""
    default: list[objectives.Objective] = []
    soft_weight = config.prediction_weight * config.soft_label_weight
    hard_weight = config.prediction_weight * (1 - config.soft_label_weight)
    if soft_weight:
        prediction_loss = config.prediction_loss or "kd"
        options: dict[str, Any] = {"weight": soft_weight}
        if prediction_loss != "mse":
            options["temperature"] = config.temperature
            options["scale_by_square"] = config.scale_by_square
            options["top_k"] = config.cache_top_k
        if prediction_loss == "kd":
            options["direction"] = config.kl_direction
            options["skew_alpha"] = config.skew_alpha
        default.append(PREDICTION_LOSSES[prediction_loss](**options))
    if hard_weight:
        default.append(objectives.HardLabels(hard_weight))
    for stack, mapping in config.mappings.items():
        default += _objectives_of_stack(config, stack, mapping)
    return default


def _objectives_of_stack(config: DistillationConfig, stack: str, mapping: Any) -> list[objectives.Objective]:
    """Return the objectives that compare the hidden states of a stack (encoder or decoder), and its embeddings."""
    prefix = ""
    options: dict[str, Any] = {"hidden_mask": config.hidden_mask}
    if stack == "decoder":
        prefix = "decoder_"
        options = {"stack": stack, "decoder_mask": config.decoder_mask}
    names = _names_of_losses(config.hidden_loss)
    stack_objectives: list[objectives.Objective] = []
    for name in names:
        layer_options = {"layer_mapping": mapping, "layer_weights": config.hidden_weights, **options}
        if name == "cka" and config.pool_statistics:
            layer_options["pool_statistics"] = True
        logged_name = "hidden" if len(names) == 1 else name
        objective = HIDDEN_LOSSES[name](name=prefix + logged_name, **layer_options)
        # Objectives that compare no hidden states ignore this attribute.
        objective.use_bottlenecks = config.use_bottlenecks
        stack_objectives.append(objective)
    if config.embedding_weight:
        stack_objectives.append(
            objectives.EmbeddingOutputs(f"{prefix}embedding", weight=config.embedding_weight, **options)
        )
    return stack_objectives


def show_attention(chosen: Sequence[objectives.Objective], *models: PreTrainedModel) -> None:
    """Switch models to eager attention, which returns attention matrices, if an objective needs these matrices."""
    needs_attention = any("output_attentions" in objective.options for objective in chosen)
    if needs_attention:
        for model in models:
            set_attention(model, "eager")
