"""What a student is trained with besides its labels: one loss per file, tensors in, scalar out."""

from .hidden_mse_loss import HiddenMSELoss
from .logit_distillation_loss import LogitDistillationLoss


__all__ = ["HiddenMSELoss", "LogitDistillationLoss"]
