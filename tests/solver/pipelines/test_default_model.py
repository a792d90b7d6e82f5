import pytest
from transformers import pipeline

import hf_mwp  # noqa: F401 (registers the task)


def test_without_a_model_the_error_says_what_to_pass():
    with pytest.raises(ValueError, match="no default model.*model="):
        pipeline("math-word-problem")
