"""Distillation losses. Each takes tensors of student and teacher and returns a scalar."""

from .attention_mse_loss import AttentionMSELoss
from .cka_loss import CKALoss
from .ckd_pair_loss import CKDPairLoss
from .ckd_triple_loss import CKDTripleLoss
from .cosine_loss import CosineLoss
from .dkd_loss import DKDLoss
from .fsp_loss import FSPLoss
from .gram_loss import GramLoss
from .hidden_mse_loss import HiddenMSELoss
from .logit_distillation_loss import LogitDistillationLoss
from .nst_loss import NSTLoss
from .pkd_loss import PKDLoss
from .procrustes_loss import ProcrustesLoss
from .relation_loss import RelationLoss


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
