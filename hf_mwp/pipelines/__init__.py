"""The pipeline `math-word-problem`, which is registered when this package is imported."""

from pathlib import Path
from typing import Any

from transformers import AutoModel
from transformers.pipelines import PIPELINE_REGISTRY

from ..models.mwp_solver import SolverFolderError
from .math_word_problem_pipeline import MathWordProblemPipeline


DEFAULT_MODEL = "hf_mwp_quickstart/student"


class _DefaultModel(dict):
    """Default model: the student trained by `examples/quickstart.py`. Raises `SolverFolderError` if it is missing."""

    def __getitem__(self, key: str) -> Any:
        if key == "model" and not Path(DEFAULT_MODEL).is_dir():
            raise SolverFolderError(
                f"No model was given, and the default model {DEFAULT_MODEL} does not exist. Train it with `python "
                "examples/quickstart.py` (`make demo`), or pass model=FOLDER_OR_HUB_ID."
            )
        return super().__getitem__(key)


PIPELINE_REGISTRY.register_pipeline(
    "math-word-problem",
    pipeline_class=MathWordProblemPipeline,
    pt_model=AutoModel,
    default=_DefaultModel(model=(DEFAULT_MODEL, None)),
    type="text",
)

__all__ = ["MathWordProblemPipeline"]
