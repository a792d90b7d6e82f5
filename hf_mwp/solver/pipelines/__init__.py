"""The pipeline `math-word-problem`, which is registered when this package is imported."""

from typing import Any

from transformers import AutoModel
from transformers.pipelines import PIPELINE_REGISTRY

from .math_word_problem_pipeline import MathWordProblemPipeline


class _NoDefault(dict):
    """Default models of a task that has none."""

    def __getitem__(self, key: str) -> Any:
        raise ValueError('The pipeline "math-word-problem" has no default model. Pass model=FOLDER_OR_HUB_ID.')


PIPELINE_REGISTRY.register_pipeline(
    "math-word-problem",
    pipeline_class=MathWordProblemPipeline,
    pt_model=AutoModel,
    default=_NoDefault(model=None),
    type="text",
)

__all__ = ["MathWordProblemPipeline"]
