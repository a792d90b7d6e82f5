"""Maximum sequence length of encoders."""

from typing import Any


def count_positions(config: Any) -> int:
    """Most tokens that an encoder has positions for; RoBERTa and MPNet count them from the padding token on."""
    offset = getattr(config, "position_offset", 0)
    if "roberta" in config.model_type or config.model_type == "camembert":
        offset = config.pad_token_id + 1
    elif "mpnet" in config.model_type:
        # Its padding token is 1, whatever the config says.
        offset = 2
    return config.max_position_embeddings - offset
