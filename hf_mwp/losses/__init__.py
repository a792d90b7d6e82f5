"""Distillation losses. Each takes tensors of student and teacher and returns a scalar."""

from ..lazy_names import lazy_names


_NAMES = {
    "attention.attention_mse_loss": ("AttentionMSELoss",),
    "attention.relation_loss": ("RelationLoss",),
    "hidden_states.cka_loss": ("CKALoss",),
    "hidden_states.ckd_pair_loss": ("CKDPairLoss",),
    "hidden_states.ckd_triple_loss": ("CKDTripleLoss",),
    "hidden_states.cosine_loss": ("CosineLoss",),
    "hidden_states.fsp_loss": ("FSPLoss",),
    "hidden_states.gram_loss": ("GramLoss",),
    "hidden_states.hidden_mse_loss": ("HiddenMSELoss",),
    "hidden_states.nst_loss": ("NSTLoss",),
    "hidden_states.pkd_loss": ("PKDLoss",),
    "hidden_states.procrustes_loss": ("ProcrustesLoss",),
    "predictions.dkd_loss": ("DKDLoss",),
    "predictions.logit_distillation_loss": ("LogitDistillationLoss",),
}
__all__, __getattr__, __dir__ = lazy_names(__name__, _NAMES)
