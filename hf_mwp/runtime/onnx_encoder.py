"""Encoder of any architecture as an ONNX graph."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np

from ..usage_error import UsageError


FILE_NAME = "encoder.onnx"


class OnnxEncoder:
    """
    The encoder of a folder that `hf-mwp export --format onnx` has made, with its bottleneck networks.

    Args:
        folder (`str` or `Path`): The folder.

    Raises:
        UsageError: onnxruntime is not installed, or the graph is damaged.
    """

    def __init__(self, folder: str | Path) -> None:
        path = Path(folder) / FILE_NAME
        try:
            from onnxruntime import InferenceSession, SessionOptions
        except ImportError as error:
            raise UsageError(f"{path} needs onnxruntime: `pip install onnxruntime`.") from error
        options = SessionOptions()
        options.log_severity_level = 3
        # As NumPy and PyTorch do; 0 takes all cores.
        options.intra_op_num_threads = int(os.environ.get("OMP_NUM_THREADS") or 0)
        try:
            self.session = InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
        except Exception as error:  # onnxruntime has a class of its own for each fault.
            raise UsageError(f"{path} cannot be read ({error}): export the folder again.") from error

    def __call__(self, input_ids: np.ndarray) -> np.ndarray:
        """Compute the hidden states `(S, H)` of a text's tokens `(S,)`."""
        return self.session.run(None, {"input_ids": input_ids[None].astype(np.int64)})[0][0]
