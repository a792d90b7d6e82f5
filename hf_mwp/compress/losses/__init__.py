"""Distillation losses. Each takes tensors of student and teacher and returns a scalar."""

from hf_mwp.utils.lazy_names import lazy_names


_NAMES = {
    "attention_mse_loss": ("AttentionMSELoss",),
    "relation_loss": ("RelationLoss",),
    "cka_loss": ("CKALoss",),
    "ckd_pair_loss": ("CKDPairLoss",),
    "ckd_triple_loss": ("CKDTripleLoss",),
    "cosine_loss": ("CosineLoss",),
    "fsp_loss": ("FSPLoss",),
    "gram_loss": ("GramLoss",),
    "hidden_mse_loss": ("HiddenMSELoss",),
    "nst_loss": ("NSTLoss",),
    "pkd_loss": ("PKDLoss",),
    "procrustes_loss": ("ProcrustesLoss",),
    "dkd_loss": ("DKDLoss",),
    "logit_distillation_loss": ("LogitDistillationLoss", "SoftenedLoss"),
    "state_loss": ("StateLoss",),
}
__all__, __getattr__, __dir__ = lazy_names(__name__, _NAMES)
