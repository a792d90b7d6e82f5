"""Configuration of the thought-expansion decoder ATHENA."""

from typing import Literal

from huggingface_hub.dataclasses import strict
from transformers import PreTrainedConfig

from .thoughts import OUTPUT_CONSTANTS, TRANSFORMS


@strict
class AthenaConfig(PreTrainedConfig):
    r"""
    Configuration of an [`AthenaModel`], the decoder of Kim et al., "ATHENA: Mathematical Reasoning with Thought
    Expansion" (EMNLP 2023). Thoughts are expressions with an embedding; each round makes candidates from the pool of
    kept thoughts. Defaults follow the paper and the authors' implementation unless stated otherwise.

    Args:
        hidden_size (`int`, *optional*, defaults to 312): Width of thoughts, contexts and goals.
        encoder_hidden_size (`int`, *optional*, defaults to `hidden_size`):
            Width of the encoder's hidden states. If it differs from `hidden_size`, they are projected.
        num_attention_heads (`int`, *optional*, defaults to 12): Number of attention heads (paper: as the encoder).
        intermediate_size (`int`, *optional*, defaults to `4 * hidden_size`): Feed-forward width (paper: encoder's).
        operators (`list[str]`, *optional*, defaults to `["+", "-", "*", "/", "^"]`): Operators of the output.
        constants (`list[str]`, *optional*, defaults to `[]`):
            Constants of the output, in the order of their ids. 0, 1, 2 and 0.5, which thoughts use, are added.
        initial_constants (`list[str]`, *optional*, defaults to `constants`): Constants that are initial thoughts.
        transforms (`list[str]`, *optional*, defaults to `["NEG", "INV", "ROOT", "HALF"]`):
            Operations on one thought, in the order of expansion.
        threshold (`float`, *optional*, defaults to 0.5): Minimum probability of candidates that are kept.
        strength (`float`, *optional*, defaults to 0.95): Probability of an answer that ends the expansion.
        max_depth (`int`, *optional*):
            Maximum number of rounds, including the initial one; 0 for no limit. Defaults to the rounds of the deepest
            training target. (The authors' implementation uses the test labels.)
        max_thoughts (`int`, *optional*, defaults to 64):
            Maximum size of the pool in inference (Math23k needs 22); 0 for none, as in the authors' implementation.
        max_candidates (`int`, *optional*, defaults to 1024): Maximum number of candidates in a round; 0 for no limit.
        max_length (`int`, *optional*, defaults to 45): Maximum number of symbols in an answer.
        norm (`str`, *optional*, defaults to `"pre"`): Layer norms before (`"pre"`) or after (`"post"`) the layers.
        chain (`str`, *optional*, defaults to `"append"`):
            How contexts of kept thoughts change the reference (attention memory) of later rounds: `"append"` (1 in the
            authors' implementation), `"replace"` (2) or `"none"` (0).
        goal (`str`, *optional*, defaults to `"last"`):
            Reference of the answering layer: the question's `"last"` token, or `"all"` its tokens.
        gold (`str`, *optional*, defaults to `"nodes"`):
            Positive candidates in training: the target's `"nodes"`, or also their `"subsets"` (the authors' `multi`).
        merge_numbers (`bool`, *optional*, defaults to `True`):
            Whether equal numbers of a text are one thought (separate thoughts in the authors' implementation).
        strict_exponents (`bool`, *optional*, defaults to `False`):
            Whether numbers of the text cannot be exponents, as in the authors' implementation, or only 2 and 3 can.
        reciprocal_constants (`bool`, *optional*, defaults to `True`):
            Whether a constant below 1 is written as `1 / c` if its reciprocal `c` is an initial constant too.
        loss_normalization (`str`, *optional*, defaults to `"problems"`):
            Divisor of the summed loss: the number of `"problems"`, or the number of candidates plus pooled thoughts
            (`"thoughts"`, as in the authors' implementation).
        ranking (`str`, *optional*, defaults to `"path"`):
            Order of several answers: `"path"`, log answering probability plus log probabilities of all nodes, or
            `"answer"`, the answering logit, which always chooses the answer with one beam.
        beam_threshold (`float`, *optional*, defaults to 0.1): Replaces `threshold` if several beams are used.
        dropout (`float`, *optional*, defaults to 0.5): Dropout after each attention and feed-forward layer.
        layer_norm_eps (`float`, *optional*, defaults to 1e-5): Epsilon of the layer norms.
        initializer_range (`float`, *optional*):
            Standard deviation of the linear layers' initial weights. Defaults to the initialisation of `nn.Linear`.
    """

    model_type = "mwp_athena"

    hidden_size: int = 312
    encoder_hidden_size: int | None = None
    num_attention_heads: int = 12
    intermediate_size: int | None = None
    operators: list[str] | tuple[str, ...] = ("+", "-", "*", "/", "^")
    constants: list[str] | tuple[str, ...] = ()
    initial_constants: list[str] | tuple[str, ...] | None = None
    transforms: list[str] | tuple[str, ...] = TRANSFORMS
    threshold: float | int = 0.5
    strength: float | int = 0.95
    max_depth: int | None = None
    max_thoughts: int = 64
    max_candidates: int = 1024
    max_length: int = 45
    norm: Literal["pre", "post"] = "pre"
    chain: Literal["append", "replace", "none"] = "append"
    goal: Literal["last", "all"] = "last"
    gold: Literal["nodes", "subsets"] = "nodes"
    merge_numbers: bool = True
    strict_exponents: bool = False
    reciprocal_constants: bool = True
    loss_normalization: Literal["problems", "thoughts"] = "problems"
    ranking: Literal["path", "answer"] = "path"
    beam_threshold: float | int = 0.1
    dropout: float | int = 0.5
    layer_norm_eps: float = 1e-5
    initializer_range: float | None = None

    def __post_init__(self, **kwargs):
        for name in ("operators", "constants", "transforms"):
            setattr(self, name, list(getattr(self, name)))
        if self.initial_constants is None:
            self.initial_constants = self.constants
        self.initial_constants = list(self.initial_constants)
        for constant in OUTPUT_CONSTANTS:
            if constant not in self.constants:
                self.constants.append(constant)
        self.encoder_hidden_size = self.encoder_hidden_size or self.hidden_size
        self.intermediate_size = self.intermediate_size or 4 * self.hidden_size
        super().__post_init__(**kwargs)

    def validate_decoder(self):
        """Validate value ranges; called by `strict`."""
        sizes = ("hidden_size", "encoder_hidden_size", "num_attention_heads", "intermediate_size", "max_length")
        if min(getattr(self, name) for name in sizes) < 1:
            raise ValueError(f"`{'`, `'.join(sizes)}` must be >= 1")
        if min(self.max_thoughts, self.max_candidates, self.max_depth or 0) < 0:
            raise ValueError("`max_thoughts`, `max_candidates` and `max_depth` must be >= 0")
        if self.hidden_size % self.num_attention_heads:
            heads = f"`num_attention_heads` ({self.num_attention_heads})"
            raise ValueError(f"`hidden_size` ({self.hidden_size}) must be a multiple of {heads}")
        for name in ("threshold", "strength", "beam_threshold"):
            if not 0 <= getattr(self, name) <= 1:
                raise ValueError(f"`{name}` must be a probability from 0 to 1, got {getattr(self, name)}")
        if not 0 <= self.dropout < 1:
            raise ValueError(f"`dropout` must be in [0, 1), got {self.dropout}")
        needed = "+-*/^" if "ROOT" in self.transforms else "+-*/"
        missing = [operator for operator in needed if operator not in self.operators]
        if missing:
            raise ValueError(f"`operators` must contain {missing}, which thoughts need")
        if len({*self.transforms} & {*TRANSFORMS}) != len(self.transforms):
            raise ValueError(f"`transforms` may contain {list(TRANSFORMS)} once each, got {self.transforms}")
        foreign = [constant for constant in self.initial_constants if constant not in self.constants]
        if foreign:
            raise ValueError(f"`initial_constants` {foreign} are not among `constants` {self.constants}")
