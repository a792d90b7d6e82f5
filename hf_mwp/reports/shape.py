"""Size and cost of an encoder that need no weights."""

from collections.abc import Mapping
from typing import Any

import torch

from ..metrics import count_flops, count_parameters
from ..models import MwpStudentConfig, MwpStudentModel


def measure_shape(shape: Mapping[str, Any]) -> dict[str, int]:
    """
    `parameters` of a BERT-shaped encoder and floating point operations (`flops`, see [`metrics.count_flops`]) of one
    text, from its shape alone: fields of [`MwpStudentConfig`], `tokens` (length of the text, 128 by default) and
    `pooling` (whether the pooling layer of a BERT is counted, `True` by default).
    """
    fields = dict(shape)
    tokens, pooling = fields.pop("tokens", 128), fields.pop("pooling", True)
    # On the meta device nothing is computed and no memory is taken, and the operations are the same.
    with torch.device("meta"):
        model = MwpStudentModel(MwpStudentConfig(**fields), add_pooling_layer=pooling).eval()
        inputs = {"input_ids": torch.ones(1, tokens, dtype=torch.long)}
    with torch.no_grad():
        flops = count_flops(model, inputs)
    return {"parameters": count_parameters(model), "flops": flops}
