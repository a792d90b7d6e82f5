"""Metrics that are computed from the predictions and labels of single examples."""

import math
from collections.abc import Sequence

import numpy as np

from hf_mwp.compress.metrics.glue import GLUE_FIGURES


def perplexity(losses: Sequence[float], num_tokens: Sequence[int]) -> float:
    """Compute the perplexity per token from the negative log-likelihood of each text and its number of tokens."""
    return math.exp(np.sum(losses) / np.sum(num_tokens))


METRICS = {**GLUE_FIGURES, "perplexity": perplexity}
