"""Distillation losses. Each takes tensors of student and teacher and returns a scalar."""

from .attention.attention_mse_loss import AttentionMSELoss
from .attention.relation_loss import RelationLoss
from .hidden_states.cka_loss import CKALoss
from .hidden_states.ckd_pair_loss import CKDPairLoss
from .hidden_states.ckd_triple_loss import CKDTripleLoss
from .hidden_states.cosine_loss import CosineLoss
from .hidden_states.fsp_loss import FSPLoss
from .hidden_states.gram_loss import GramLoss
from .hidden_states.hidden_mse_loss import HiddenMSELoss
from .hidden_states.nst_loss import NSTLoss
from .hidden_states.pkd_loss import PKDLoss
from .hidden_states.procrustes_loss import ProcrustesLoss
from .predictions.dkd_loss import DKDLoss
from .predictions.logit_distillation_loss import LogitDistillationLoss


__all__ = [
    "AttentionMSELoss",
    "CKALoss",
    "CKDPairLoss",
    "CKDTripleLoss",
    "CosineLoss",
    "DKDLoss",
    "FSPLoss",
    "GramLoss",
    "HiddenMSELoss",
    "LogitDistillationLoss",
    "NSTLoss",
    "PKDLoss",
    "ProcrustesLoss",
    "RelationLoss",
]
