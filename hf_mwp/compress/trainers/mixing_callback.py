"""Callback that interpolates pretrained and trained weights at the end of training."""

import os

from torch import nn
from transformers import AutoModel, TrainerCallback
from transformers.utils import logging

from hf_mwp.compress.distillation.parameter_mixing import check_mixing, mix_parameters
from hf_mwp.compress.pruning.pruning_modes import cuts_while_training
from hf_mwp.utils.checks import check_weight
from hf_mwp.utils.main_process import shards_weights


logger = logging.get_logger(__name__)


class ParameterMixingCallback(TrainerCallback):
    """
    Callback for parameter mixing (A Compact Model for Mathematics Problem Representations Distilled from BERT, AAAI
    2025): it interpolates between pretrained and trained weights ([`mix_parameters`]) once, at the end of training and
    after the best checkpoint is loaded. Checkpoints contain the trained weights; `save_model` and `evaluate` after
    `train` use the mixed weights.

    `pretrained` is a model, or its folder or Hub id with safetensors weights (otherwise `OSError`); for a solver, pass
    a solver or an encoder such as an [`MwpStudentForPreTraining`]. Raises `ValueError` when training begins if names
    or shapes of weights differ, heads will be cut during training, or weights are split over processes.
    """

    def __init__(self, pretrained: nn.Module | str | os.PathLike, pretrained_weight: float = 0.2) -> None:
        check_weight({"pretrained_weight": pretrained_weight}, "pretrained_weight")
        if not isinstance(pretrained, nn.Module):
            options = {"use_safetensors": True, "output_loading_info": True}
            pretrained, loading_info = AutoModel.from_pretrained(pretrained, trust_remote_code=False, **options)
            if any(name.startswith("pooler.") for name in loading_info["missing_keys"]):
                pretrained.pooler = None  # its weights are random
        self.pretrained = pretrained
        self.pretrained_weight = pretrained_weight

    def on_train_begin(self, args, state, control, model=None, **kwargs):
        """Check before training that the weights can be mixed."""
        if shards_weights(args):
            raise ValueError("FSDP and DeepSpeed's ZeRO-3 split weights, so that they cannot be mixed. Use DDP.")
        check_mixing(self.pretrained, model)

    def on_epoch_begin(self, args, state, control, model=None, **kwargs):
        """Check before the first step, when all callbacks have begun, that no heads will be cut."""
        if cuts_while_training(model):
            raise ValueError(
                '`HeadPruningCallback(mode="slice")` cuts heads during training, and weights of different shapes '
                'cannot be mixed. Use `mode="mask"`, which cuts heads after training.'
            )

    def on_train_end(self, args, state, control, model=None, **kwargs):
        """Mix the pretrained weights into the model."""
        mix_parameters(self.pretrained, model, self.pretrained_weight, inplace=True)
        # Earlier evaluations are not of these weights. An attribute that is not a field of the state is not saved.
        state.num_outdated_logs = len(state.log_history)
        logger.info(f"Mixed {self.pretrained_weight:g} of the weights from before the training into the model.")
