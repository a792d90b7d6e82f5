"""Configuration of the answer verifier."""

from huggingface_hub.dataclasses import strict
from transformers import PreTrainedConfig


@strict
class AnswerVerifierConfig(PreTrainedConfig):
    r"""
    Configuration of an [`AnswerVerifierModel`].

    Args:
        encoder_hidden_size (`int`, *optional*, defaults to 312): Width of the hidden states of the text.
        symbols (`list[str]`, *optional*, defaults to `["+", "-", "*", "/", "^"]`):
            Operators and constants of the solver, in the order of its ids.
        features (`list[str]`, *optional*, defaults to `[]`): Names of the re-ranker's features of an answer that the
            network reads.
        hidden_size (`int`, *optional*, defaults to 256): Width of the nodes' states.
        num_hidden_layers (`int`, *optional*, defaults to 2): Number of layers.
        num_attention_heads (`int`, *optional*, defaults to 4): Number of attention heads.
        intermediate_size (`int`, *optional*, defaults to 768): Width of the feed-forward networks.
        dropout (`float`, *optional*, defaults to 0.1): Dropout of embeddings and sublayers.
        layer_norm_eps (`float`, *optional*, defaults to 1e-5): Epsilon of the normalisations.
    """

    model_type = "mwp_answer_verifier"

    encoder_hidden_size: int = 312
    symbols: list[str] | tuple[str, ...] = ("+", "-", "*", "/", "^")
    features: list[str] | tuple[str, ...] = ()
    hidden_size: int = 256
    num_hidden_layers: int = 2
    num_attention_heads: int = 4
    intermediate_size: int = 768
    dropout: float | int = 0.1
    layer_norm_eps: float = 1e-5

    def __post_init__(self, **kwargs):
        self.symbols = list(self.symbols)
        self.features = list(self.features)
        super().__post_init__(**kwargs)

    def validate_verifier(self):
        """Validate value ranges; called by `strict`."""
        sizes = ("encoder_hidden_size", "hidden_size", "num_hidden_layers", "num_attention_heads", "intermediate_size")
        if min(getattr(self, name) for name in sizes) < 1:
            raise ValueError(f"`{'`, `'.join(sizes)}` must be >= 1")
        if self.hidden_size % self.num_attention_heads:
            raise ValueError(
                f"`hidden_size` ({self.hidden_size}) must be a multiple of `num_attention_heads` "
                f"({self.num_attention_heads})"
            )
        if not 0 <= self.dropout < 1:
            raise ValueError(f"`dropout` must be in [0, 1), got {self.dropout}")
