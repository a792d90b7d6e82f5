"""What a student is trained with besides its labels: one loss per file, tensors in, scalar out."""

from .attention_mse_loss import AttentionMSELoss
from .ckd_pair_loss import CKDPairLoss
from .ckd_triple_loss import CKDTripleLoss
from .dkd_loss import DKDLoss
from .fsp_loss import FSPLoss
from .hidden_mse_loss import HiddenMSELoss
from .logit_distillation_loss import LogitDistillationLoss
from .nst_loss import NSTLoss
from .pkd_loss import PKDLoss
from .relation_loss import RelationLoss


__all__ = [
    "AttentionMSELoss",
    "CKDPairLoss",
    "CKDTripleLoss",
    "DKDLoss",
    "FSPLoss",
    "HiddenMSELoss",
    "LogitDistillationLoss",
    "NSTLoss",
    "PKDLoss",
    "RelationLoss",
]
