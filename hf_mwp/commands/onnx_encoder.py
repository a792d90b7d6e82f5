"""Export of a solver's encoder as an ONNX graph."""

import logging
import warnings
from pathlib import Path
from tempfile import TemporaryDirectory

import torch
from torch import Tensor, nn

from hf_mwp.runtime.encoder import GRAPH
from hf_mwp.solver.models import MwpSolver


OPSET = 20


class _States(nn.Module):
    """Encoder of a solver with bottleneck networks, for a single text without padding."""

    def __init__(self, solver: MwpSolver) -> None:
        super().__init__()
        self.solver = solver

    def forward(self, input_ids: Tensor) -> Tensor:
        return self.solver.encode(input_ids, torch.ones_like(input_ids)).last_hidden_state


@torch.no_grad()
def write_graph(solver: MwpSolver, path: Path, max_length: int, quantize: bool) -> None:
    """Write the encoder of a solver as an ONNX graph for texts of at most `max_length` tokens."""
    from onnxruntime.quantization import QuantType, quantize_dynamic

    text = torch.arange(min(7, max_length))[None]
    text_length = torch.export.Dim("length", min=2, max=max_length)
    logging.getLogger("torch.onnx").setLevel(logging.ERROR)
    with TemporaryDirectory() as temporary, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        single_precision_path = Path(temporary) / GRAPH if quantize else path
        torch.onnx.export(
            _States(solver.eval()).eval(),
            (text,),
            str(single_precision_path),
            input_names=["input_ids"],
            output_names=["states"],
            dynamic_shapes={"input_ids": {1: text_length}},
            dynamo=True,
            opset_version=OPSET,
            external_data=False,
            verbose=False,
        )
        if quantize:
            # Weights become int8, with one scale per column; inputs of matrix products are quantized at run time.
            # Skip operators with one-dimensional inputs, which onnxruntime cannot run with one scale per column.
            quantize_dynamic(
                single_precision_path,
                path,
                per_channel=True,
                weight_type=QuantType.QInt8,
                op_types_to_quantize=["MatMul", "Gemm", "Gather"],
            )
