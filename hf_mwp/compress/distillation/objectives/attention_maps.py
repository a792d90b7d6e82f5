"""Objective on attention matrices."""

from collections.abc import Mapping
from typing import Any

from torch import Tensor, nn

from hf_mwp.compress.losses import AttentionMSELoss
from hf_mwp.utils.checked_types import checked

from ..features import Features, token_mask
from .head_objective import HeadObjective


class AttentionMaps(HeadObjective):
    """
    Objective that trains the student's attention matrices to match the teacher's. Both models need eager attention,
    and a teacher cache cannot store the matrices. Pruned heads are left out, see [`HeadObjective`]. For
    encoder-decoder models `stack` may also be `"decoder"` or `"cross"` (the decoder's attention to the encoder).

    Args:
        loss (`nn.Module`, *optional*): Defaults to [`AttentionMSELoss`], head by head.
        name (`str`, *optional*, defaults to `"attention"`), kwargs: See [`LayerObjective`].
    """

    options = {"output_hidden_states": True, "output_attentions": True}
    stacks = ("encoder", "decoder", "cross")
    cacheable = False
    kinds = ("attention",)
    are_matrices = True

    @checked
    def __init__(self, loss: nn.Module | None = None, name: str = "attention", **kwargs) -> None:
        super().__init__(AttentionMSELoss() if loss is None else loss, name=name, **kwargs)

    def setup(self, student: Features, teacher: Features, inputs: Mapping[str, Any]) -> None:
        super().setup(student, teacher, inputs)
        for who, features in (("student", student), ("teacher", teacher)):
            if not features.layers(f"{self.prefix}attention"):
                raise ValueError(
                    f"The {who} returns no attention matrices, which need eager attention. Call "
                    '`set_attn_implementation("eager")`.'
                )

    def mask(self, inputs: Mapping[str, Any]) -> Tensor | None:
        """Return the mask of [`LayerObjective.mask`], or `(batch, queries, keys)` for cross-attention."""
        queries = super().mask(inputs)
        if self.stack != "cross":
            return queries
        keys = token_mask(inputs, inputs["input_ids"].shape, queries.device)
        return queries.unsqueeze(-1) & keys.unsqueeze(-2)
