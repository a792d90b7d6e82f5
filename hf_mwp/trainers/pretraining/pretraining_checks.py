"""Checks that a model can be pretrained as the arguments say."""

from __future__ import annotations

from torch import nn

from ...data.batches.mwp_processor import MwpProcessor
from ...models.model_kind import kind_of
from .pretraining_config import PreTrainingConfig


def check_pretraining(model: nn.Module | None, args: PreTrainingConfig, processor: MwpProcessor) -> None:
    """Raises `TypeError` or `ValueError` if a model cannot be pretrained as the arguments say."""
    if model is None or kind_of(model).is_solver:
        raise TypeError(
            "`model` must be a model to pretrain, such as `MwpStudentForPreTraining`, got "
            f"{type(model).__name__ if model is not None else None}."
        )
    if args.pos_loss_weight and not getattr(model.config, "num_pos_tags", 0):
        raise ValueError(
            f"`{type(model).__name__}` has no tagging head: use `MwpStudentForPreTraining`, or set "
            "`pos_loss_weight=0`."
        )
    embeddings = model.get_input_embeddings().num_embeddings
    if len(processor.tokenizer) > embeddings:
        raise ValueError(
            f"The tokenizer has {len(processor.tokenizer)} entries, the model embeds {embeddings}: call "
            "`processor.resize_embeddings(model)`, or give the model the tokenizer that it was made for."
        )
