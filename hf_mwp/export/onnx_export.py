"""Export of encoders as ONNX graphs."""

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
    """Encoder of a solver with bottleneck networks, for a single text without padding."""

    def __init__(self, solver: MwpSolver) -> None:
        super().__init__()
        self.solver = solver

    def forward(self, input_ids: Tensor) -> Tensor:
        return self.solver.encode(input_ids, torch.ones_like(input_ids)).last_hidden_state


@torch.no_grad()
def export_encoder(solver: MwpSolver, folder: str | Path, max_length: int, quantize: bool = False) -> Path:
    """
    Write the encoder of a solver, including bottleneck networks, to `encoder.onnx` in a folder, and return its path.

    Args:
        solver ([`MwpSolver`]): The solver, on the CPU.
        folder (`str` or `Path`): The output folder.
        max_length (`int`): Maximum number of tokens in a text.
        quantize (`bool`, *optional*, defaults to `False`): Whether to quantize weights to int8 (one scale per column),
            and the inputs of matrix products to uint8 at run time (one scale per tensor).

    Raises:
        UsageError: onnx, onnxscript or onnxruntime is not installed.
    """
    try:
        import onnxscript  # noqa: F401 (needed by the exporter)
        from onnxruntime.quantization import QuantType, quantize_dynamic
    except ImportError as error:
        raise UsageError(f"{error}. Install the requirements with `pip install 'hf-mwp[onnx]'`.") from error
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
            # Skip operators with one-dimensional inputs, which onnxruntime cannot run with one scale per column.
            kinds = ["MatMul", "Gemm", "Gather"]
            quantize_dynamic(single, path, per_channel=True, weight_type=QuantType.QInt8, op_types_to_quantize=kinds)
    return path
