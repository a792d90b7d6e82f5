"""Encoders as ONNX graphs."""

from __future__ import annotations

import logging
import warnings
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn

from ..runtime.encoder import GRAPH
from ..usage_error import UsageError


if TYPE_CHECKING:
    from ..models import MwpSolver

OPSET = 20


class _States(nn.Module):
    """The hidden states that a solver's decoder reads, of one text without padding."""

    def __init__(self, solver: MwpSolver) -> None:
        super().__init__()
        self.solver = solver

    def forward(self, input_ids: Tensor) -> Tensor:
        return self.solver.encode(input_ids, torch.ones_like(input_ids)).last_hidden_state


@torch.no_grad()
def export_encoder(solver: MwpSolver, folder: str | Path, max_length: int, quantize: bool = False) -> Path:
    """
    Write the encoder of a solver, with its bottleneck networks, as `encoder.onnx` to a folder.

    Args:
        solver ([`MwpSolver`]): The solver, on the CPU.
        folder (`str` or `Path`): Where to.
        max_length (`int`): Most tokens of a text.
        quantize (`bool`, *optional*, defaults to `False`): Whether to round weights to int8 (one scale for each
            column) and inputs of matrix products to uint8 while it runs (one scale for each tensor).

    Raises:
        UsageError: onnx, onnxscript or onnxruntime is not installed.
    """
    try:
        import onnxscript  # noqa: F401 (what the exporter needs)
        from onnxruntime.quantization import QuantType, quantize_dynamic
    except ImportError as error:
        raise UsageError(f"{error}: `pip install 'hf-mwp[onnx]'` installs what exporting needs.") from error
    path = Path(folder) / GRAPH
    length = torch.export.Dim("length", min=2, max=max_length)
    text = torch.arange(min(7, max_length))[None]
    logging.getLogger("torch.onnx").setLevel(logging.ERROR)
    with TemporaryDirectory() as temporary, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        single = Path(temporary) / GRAPH if quantize else path
        torch.onnx.export(
            _States(solver.eval()).eval(),
            (text,),
            str(single),
            dynamo=True,
            opset_version=OPSET,
            input_names=["input_ids"],
            output_names=["states"],
            dynamic_shapes={"input_ids": {1: length}},
            external_data=False,
            verbose=False,
        )
        if quantize:
            # Other operators have inputs of one dimension, which onnxruntime cannot run with a scale for each column.
            kinds = ["MatMul", "Gemm", "Gather"]
            quantize_dynamic(single, path, per_channel=True, weight_type=QuantType.QInt8, op_types_to_quantize=kinds)
    return path
