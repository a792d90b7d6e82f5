"""Size and cost of an encoder without weights."""

from collections.abc import Mapping
from typing import Any

import torch

from hf_mwp.metrics import count_flops, count_parameters
from hf_mwp.models import MwpStudentConfig, MwpStudentModel


def measure_shape(shape: Mapping[str, Any]) -> dict[str, int]:
    """
    Return the `parameters` of a BERT-shaped encoder and its floating point operations for one text (`flops`, see
    [`metrics.count_flops`]) from its shape alone: fields of [`MwpStudentConfig`], `tokens` (length of the text, 128 by
    default) and `pooling` (count the pooling layer of a BERT, `True` by default).
    """
    fields = dict(shape)
    tokens, pooling = fields.pop("tokens", 128), fields.pop("pooling", True)
    # The meta device computes nothing and takes no memory; the operations are the same.
    with torch.device("meta"):
        model = MwpStudentModel(MwpStudentConfig(**fields), add_pooling_layer=pooling).eval()
        inputs = {"input_ids": torch.ones(1, tokens, dtype=torch.long)}
    with torch.no_grad():
        flops = count_flops(model, inputs)
    return {"parameters": count_parameters(model), "flops": flops}
