"""The pipeline `math-word-problem`; importing this package registers it."""

from transformers import AutoModel
from transformers.pipelines import PIPELINE_REGISTRY

from .default_model import DefaultModel
from .math_word_problem_pipeline import MathWordProblemPipeline


PIPELINE_REGISTRY.register_pipeline(
    "math-word-problem",
    pipeline_class=MathWordProblemPipeline,
    pt_model=AutoModel,
    default=DefaultModel(),
    type="text",
)

__all__ = ["MathWordProblemPipeline"]
