"""Parameter mixing at the end of a training."""

from __future__ import annotations

import os

from torch import nn
from transformers import AutoModel, TrainerCallback
from transformers.utils import logging

from ...distillation.parameter_mixing import check_mixing, mix_parameters
from ...options.checks import check_numbers
from ...pruning.head_closing import cuts_while_training


logger = logging.get_logger(__name__)


class ParameterMixingCallback(TrainerCallback):
    """
    Mixes the weights from before a training into the model once, when training ends and the best checkpoint is loaded
    (`load_best_model_at_end`), see [`mix_parameters`]. Checkpoints hold the weights as trained; `save_model` and
    `evaluate` after `train` see the mixed ones. Sharded models (FSDP, DeepSpeed ZeRO 3) are refused.

    Args:
        pretrained (`nn.Module` or `str`):
            The model from before, or its folder or Hub id: for a solver another solver or an encoder, such as an
            [`MwpStudentForPreTraining`], its weights in safetensors.
        pretrained_weight (`float`, *optional*, defaults to 0.2): Share of its weights.

    Raises:
        OSError: the folder or Hub id does not exist, or its weights are a pickle.
        ValueError: at the beginning of training: other names or shapes of weights, or heads that are cut on the way.

    References:
        A Compact Model for Mathematics Problem Representations Distilled from BERT (AAAI 2025), parameter mixing.

    Example:
        >>> trainer = DistillationTrainer(..., callbacks=[ParameterMixingCallback("pretrained-student")])
    """

    def __init__(self, pretrained: nn.Module | str | os.PathLike, pretrained_weight: float = 0.2) -> None:
        check_numbers(pretrained_weight=pretrained_weight)
        if not 0 <= pretrained_weight <= 1:
            raise ValueError(f"`pretrained_weight` must be from 0 to 1, got {pretrained_weight}.")
        if not isinstance(pretrained, nn.Module):
            pretrained = AutoModel.from_pretrained(pretrained, use_safetensors=True, trust_remote_code=False)
        self.pretrained, self.pretrained_weight = pretrained, pretrained_weight

    def on_train_begin(self, args, state, control, model=None, **kwargs):
        """Check that the weights can be mixed, before time is spent on training."""
        if cuts_while_training(model):
            raise ValueError(
                'Heads are cut while the model trains (`HeadPruningCallback(mode="slice")`), and weights of two '
                'shapes cannot be mixed: cut them when it has ended (`mode="mask"`).'
            )
        check_mixing(self.pretrained, model)

    def on_train_end(self, args, state, control, model=None, **kwargs):
        """Mix the weights."""
        mix_parameters(self.pretrained, model, self.pretrained_weight, inplace=True)
        logger.info(f"Mixed {self.pretrained_weight:g} of the weights from before the training into the model.")
