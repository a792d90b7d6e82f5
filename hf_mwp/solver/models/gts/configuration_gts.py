"""Configuration of the goal-driven tree-structured decoder (GTS)."""

from typing import Literal

from huggingface_hub.dataclasses import strict
from transformers import PreTrainedConfig


@strict
class GTSConfig(PreTrainedConfig):
    r"""
    Configuration of a [`GTSDecoder`], the decoder of Xie and Sun, "A Goal-Driven Tree-Structured Neural Model for Math
    Word Problems" (IJCAI 2019).

    Args:
        hidden_size (`int`, *optional*, defaults to 312): Width of goals, contexts and subtree embeddings.
        encoder_hidden_size (`int`, *optional*, defaults to `hidden_size`):
            Width of the encoder's hidden states. If it differs from `hidden_size`, a linear layer projects them.
        operator_embedding_size (`int`, *optional*, defaults to 128): Width of operator embeddings (paper: 128).
        operators (`list[str]`, *optional*, defaults to `["+", "-", "*", "/", "^"]`): Operators, in the order of ids.
        constants (`list[str]`, *optional*, defaults to `[]`):
            Numbers that an expression may use even if they do not occur in the text.
        dropout (`float`, *optional*, defaults to 0.5): Dropout before each layer (paper: 0.5).
        root_goal (`str`, *optional*, defaults to `"cls"`):
            First goal: `"cls"`, the hidden state of the first token, or `"mean"`, the mean over the valid tokens.
        max_length (`int`, *optional*, defaults to 45):
            Maximum number of symbols in an expression (original implementation: 30; Math23k needs 41).
        initializer_range (`float`, *optional*):
            Standard deviation of the linear layers' initial weights. Defaults to the initialisation of `nn.Linear`.
    """

    model_type = "mwp_gts"

    hidden_size: int = 312
    encoder_hidden_size: int | None = None
    operator_embedding_size: int = 128
    operators: list[str] | tuple[str, ...] = ("+", "-", "*", "/", "^")
    constants: list[str] | tuple[str, ...] = ()
    dropout: float | int = 0.5
    root_goal: Literal["cls", "mean"] = "cls"
    max_length: int = 45
    initializer_range: float | None = None

    def __post_init__(self, **kwargs):
        self.operators = list(self.operators)
        self.constants = list(self.constants)
        if self.encoder_hidden_size is None:
            self.encoder_hidden_size = self.hidden_size
        super().__post_init__(**kwargs)

    def validate_decoder(self):
        """Validate value ranges; called by `strict`."""
        sizes = ("hidden_size", "encoder_hidden_size", "operator_embedding_size", "max_length")
        if min(getattr(self, name) for name in sizes) < 1:
            raise ValueError(f"`{'`, `'.join(sizes)}` must be >= 1")
        if not 0 <= self.dropout < 1:
            raise ValueError(f"`dropout` must be in [0, 1), got {self.dropout}")
        if not self.operators:
            raise ValueError("`operators` must contain at least one operator")
