"""How long a text an encoder can read."""

from typing import Any


def count_positions(config: Any) -> int:
    """Most tokens that an encoder has positions for; RoBERTa counts them from the padding token on."""
    offset = getattr(config, "position_offset", 0)
    if "roberta" in config.model_type or config.model_type == "camembert":
        offset = config.pad_token_id + 1
    return config.max_position_embeddings - offset
