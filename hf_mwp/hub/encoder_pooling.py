"""The pooling layer of a published encoder."""

from __future__ import annotations

import copy

import torch
from torch import nn

from ..models import MwpStudentModel
from ..models.mwp_student.layers_mwp_student import MwpStudentPooler


def with_pooling_layer(encoder: MwpStudentModel) -> MwpStudentModel:
    """
    Return the encoder itself if it has a pooling layer, otherwise a copy with the identity as one, so that its folder
    has all weights that `AutoModel` looks for: `pooler_output` is the tanh of the first token's last state.
    """
    if encoder.pooler is not None:
        return encoder
    encoder = copy.deepcopy(encoder)
    pooler = MwpStudentPooler(encoder.config)
    nn.init.eye_(pooler.dense.weight)
    nn.init.zeros_(pooler.dense.bias)
    encoder.pooler = pooler.to(encoder.device, encoder.dtype)
    return encoder


def has_identity_pooling(encoder: MwpStudentModel) -> bool:
    """Return whether an encoder's pooling layer is that of [`with_pooling_layer`]."""
    if encoder.pooler is None:
        return False
    dense = encoder.pooler.dense
    return torch.equal(dense.weight, torch.eye(len(dense.weight)).to(dense.weight)) and not dense.bias.any()
