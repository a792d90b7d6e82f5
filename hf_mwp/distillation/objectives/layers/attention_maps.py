"""Objective on attention matrices."""

from collections.abc import Mapping
from typing import Any

from torch import Tensor, nn

from ....losses import AttentionMSELoss
from ...features import Features
from ...masks import token_mask
from ...surviving_heads import keep_maps
from .head_objective import HeadObjective


class AttentionMaps(HeadObjective):
    """
    Attention matrices of the student follow those of the teacher. Both models need eager attention, and a teacher
    cache does not keep the matrices. Pruned heads take no part, see [`HeadObjective`]. For models with two stacks
    `stack` selects `"encoder"`, `"decoder"` or `"cross"`, the decoder's attention to the encoder.

    Args:
        loss (`nn.Module`, *optional*): [`AttentionMSELoss`], head by head, if not given.
        name (`str`, *optional*, defaults to `"attention"`), kwargs: See [`LayerObjective`].
    """

    options = {"output_hidden_states": True, "output_attentions": True}
    stacks = ("encoder", "decoder", "cross")
    cacheable = False
    kinds = ("attention",)
    _keep = staticmethod(keep_maps)

    def __init__(self, loss: nn.Module | None = None, name: str = "attention", **kwargs) -> None:
        super().__init__(AttentionMSELoss() if loss is None else loss, name=name, **kwargs)

    def setup(self, student: Features, teacher: Features, inputs: Mapping[str, Any]) -> None:
        super().setup(student, teacher, inputs)
        for who, features in (("student", student), ("teacher", teacher)):
            if not features.maps(self.stack):
                raise ValueError(
                    f"The {who} gives no attention matrices: only eager attention does. Load it with "
                    '`attn_implementation="eager"`, or call `set_attn_implementation("eager")`.'
                )
        # Finds numbers of heads that differ.
        self.losses(student, teacher, inputs)

    def mask(self, inputs: Mapping[str, Any]) -> Tensor | None:
        """See [`LayerObjective.mask`]; of cross-attention `(batch, queries, keys)`."""
        queries = super().mask(inputs)
        if self.stack != "cross":
            return queries
        keys = token_mask(inputs, inputs["input_ids"].shape, queries.device)
        return queries.unsqueeze(-1) & keys.unsqueeze(-2)
