"""Maximum sequence length of encoders."""

from typing import Any


def count_positions(config: Any) -> int:
    """Return the maximum number of tokens of an encoder. RoBERTa and MPNet count positions from the padding token."""
    offset = getattr(config, "position_offset", 0)
    if "roberta" in config.model_type or config.model_type == "camembert":
        offset = config.pad_token_id + 1
    elif "mpnet" in config.model_type:
        # The padding token of MPNet is always 1, even if the config has a different value.
        offset = 2
    return config.max_position_embeddings - offset
