"""What a student is trained with besides its labels: one loss per file, tensors in, scalar out."""

from .attention_mse_loss import AttentionMSELoss
from .fsp_loss import FSPLoss
from .hidden_mse_loss import HiddenMSELoss
from .logit_distillation_loss import LogitDistillationLoss
from .nst_loss import NSTLoss


__all__ = ["AttentionMSELoss", "FSPLoss", "HiddenMSELoss", "LogitDistillationLoss", "NSTLoss"]
