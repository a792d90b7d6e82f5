"""Configuration of the MWP student encoder."""

from huggingface_hub.dataclasses import strict
from transformers import PreTrainedConfig

from .remote_code import save_student_code


@strict
class MwpStudentConfig(PreTrainedConfig):
    r"""
    Configuration of [`MwpStudentModel`], a BERT-shaped encoder (post-layer-norm) whose attention heads and
    feed-forward neurons are counted layer by layer, so that a pruned encoder is an ordinary one and loads with plain
    `from_pretrained`. The defaults are the compact model of Ming et al., "A Compact Model for Mathematics Problem
    Representations Distilled from BERT" (AAAI 2025): 3 layers, hidden size 312, feed-forward size 1200, 12 heads.

    Args:
        vocab_size (`int`, *optional*, defaults to 21128):
            Size of the vocabulary. The default is Chinese BERT's, to which tokens such as `[NUM]` are added.
        hidden_size (`int`, *optional*, defaults to 312): Width of the encoder.
        embedding_size (`int`, *optional*):
            Width of the embeddings, which a linear layer projects to `hidden_size`, as in ELECTRA. If `None`, they are
            `hidden_size` wide and are not projected.
        num_hidden_layers (`int`, *optional*, defaults to 3): Number of layers, at least 1.
        num_attention_heads (`int` or `list[int]`, *optional*, defaults to 12):
            Attention heads of every layer, or one number per layer. Of the self-attention of a layer with 0 heads the
            output bias is left.
        head_dim (`int`, *optional*):
            Width of one head. Defaults to `hidden_size // num_attention_heads`; it must be given when
            `num_attention_heads` is a list or 0, because heads keep their width when others are removed.
        intermediate_size (`int` or `list[int]`, *optional*, defaults to 1200):
            Feed-forward neurons of every layer, or one number per layer. Of the feed-forward network of a layer with 0
            neurons the output bias is left.
        hidden_act (`str`, *optional*, defaults to `"gelu"`):
            Activation of the feed-forward network and of the masked-language-modelling head.
        hidden_dropout_prob (`float`, *optional*, defaults to 0.1):
            Dropout of the embeddings and of the output of each sublayer.
        attention_probs_dropout_prob (`float`, *optional*, defaults to 0.1): Dropout of the attention probabilities.
        classifier_dropout (`float`, *optional*): Dropout before the classifier; `hidden_dropout_prob` if `None`.
        classifier_activation (`str`, *optional*, defaults to `"tanh"`):
            Activation of the pooler, on which the classifier stands: BERT's and RoBERTa's is tanh, that of DistilBERT
            ReLU, that of ELECTRA GELU.
        max_position_embeddings (`int`, *optional*, defaults to 512):
            Rows of the position table. The longest input has `max_position_embeddings - position_offset` tokens.
        type_vocab_size (`int`, *optional*, defaults to 2): Number of token types (segments).
        position_offset (`int`, *optional*, defaults to 0):
            0 numbers positions as BERT does: 0, 1, 2, ..., padding included. A larger number counts as RoBERTa does:
            the first token that is not `pad_token_id` is at `position_offset`, padding at `position_offset - 1`.
        initializer_range (`float`, *optional*, defaults to 0.02): Standard deviation of the initial weights.
        layer_norm_eps (`float`, *optional*, defaults to 1e-12): Epsilon of the layer norms.
        pad_token_id (`int`, *optional*, defaults to 0): Id of the padding token.
        bos_token_id (`int`, *optional*): Id of the first token of a text, kept for tokenizers which have one.
        eos_token_id (`int` or `list[int]`, *optional*):
            Id of the last token of a text, kept for tokenizers which have one.
        tie_word_embeddings (`bool`, *optional*, defaults to `True`):
            Whether the masked-language-modelling head shares its matrix with the word embeddings.
        num_pos_tags (`int`, *optional*, defaults to 0):
            Number of labels of part-of-speech tagging; [`MwpStudentForPreTraining`] needs it. If 0, that of
            `pos_labels`.
        pos_labels (`list[str]`, *optional*):
            The labels themselves (`"B-n"`, `"I-n"`, ...), in the order of the tagging head.
        pos_tagger (`str`, *optional*): Name of the tagger that they come from.
        pos_loss_weight (`float`, *optional*, defaults to 5.0):
            Weight of the tagging loss in [`MwpStudentForPreTraining`]; that of masked language modelling has weight 1.
        sparse_prediction (`bool`, *optional*, defaults to `False`):
            If `True`, a forward pass with labels scores the vocabulary only at the labelled tokens: `logits` then has
            the shape `(labelled tokens, vocab_size)`. At 15 % masking that saves most of the work of pretraining. With
            labels of tagging alone, [`MwpStudentForPreTraining`] does not score the vocabulary at all.
        cut_heads (`list[list[int]]`, *optional*):
            By layer, the attention heads that were cut away, counted as in the encoder before the first of them went.
            Only what compares heads with those of another model reads it.

    Raises:
        `ValueError`: if the head width cannot be derived.
        `StrictDataclassFieldValidationError`: if a field has a wrong type.
        `StrictDataclassClassValidationError`: if the fields contradict each other.

    Example:

    ```python
    >>> from hf_mwp import MwpStudentConfig

    >>> MwpStudentConfig().head_dim
    26
    >>> pruned = MwpStudentConfig(num_attention_heads=[12, 5, 0], head_dim=26, intermediate_size=[1200, 700, 64])
    >>> pruned.heads_per_layer
    [12, 5, 0]
    ```"""

    model_type = "mwp_student"
    keys_to_ignore_at_inference = ["mlm_loss", "pos_loss", "hidden_states", "attentions"]

    vocab_size: int = 21128
    hidden_size: int = 312
    embedding_size: int | None = None
    num_hidden_layers: int = 3
    num_attention_heads: int | list[int] = 12
    head_dim: int | None = None
    intermediate_size: int | list[int] = 1200
    hidden_act: str = "gelu"
    hidden_dropout_prob: float | int = 0.1
    attention_probs_dropout_prob: float | int = 0.1
    classifier_dropout: float | int | None = None
    classifier_activation: str = "tanh"
    max_position_embeddings: int = 512
    type_vocab_size: int = 2
    position_offset: int = 0
    initializer_range: float = 0.02
    layer_norm_eps: float = 1e-12
    pad_token_id: int | None = 0
    bos_token_id: int | None = None
    eos_token_id: int | list[int] | None = None
    tie_word_embeddings: bool = True
    num_pos_tags: int = 0
    pos_labels: list[str] | None = None
    pos_tagger: str | None = None
    # "with a 1:5 ratio between the two" (Ming et al., pre-training: MLM loss to POS loss).
    pos_loss_weight: float | int = 5.0
    sparse_prediction: bool = False
    cut_heads: list[list[int]] | None = None

    def __post_init__(self, **kwargs):
        if self.head_dim is None:
            heads = self.num_attention_heads
            if not isinstance(heads, int) or heads < 1 or self.hidden_size % heads:
                raise ValueError(
                    f"hidden_size={self.hidden_size} cannot be divided by num_attention_heads={heads}: give "
                    "`head_dim`, the width of one head of the encoder before heads were removed."
                )
            self.head_dim = self.hidden_size // heads
        if self.pos_labels is not None and not self.num_pos_tags:
            self.num_pos_tags = len(self.pos_labels)
        if not self.is_remote_code():
            # Of the folder that it was loaded from, not of the student.
            kwargs.pop("auto_map", None)
        super().__post_init__(**kwargs)

    def validate_architecture(self):
        """Part of the `strict` validation: the fields are possible and do not contradict each other."""
        for name in ("num_attention_heads", "intermediate_size"):
            self._per_layer(name)
        sizes = ("vocab_size", "hidden_size", "embedding_size", "num_hidden_layers", "head_dim", "type_vocab_size")
        sizes = [(name, getattr(self, name)) for name in sizes]
        dropouts = ("hidden_dropout_prob", "attention_probs_dropout_prob", "classifier_dropout")
        dropouts = [(name, getattr(self, name)) for name in dropouts]
        tags, labels, pad = self.num_pos_tags, self.pos_labels, self.pad_token_id
        first, rows = self.position_offset, self.max_position_embeddings
        for is_wrong, message in (
            *((size is not None and size < 1, f"`{name}` must be at least 1, got {size}.") for name, size in sizes),
            *((p is not None and not 0 <= p < 1, f"`{name}` must be in [0, 1), got {p}.") for name, p in dropouts),
            (tags < 0, f"`num_pos_tags` must not be negative, got {tags}."),
            (
                labels is not None and len(labels) != tags,
                f"`pos_labels` has {len(labels or ())} labels for num_pos_tags={tags}: leave `num_pos_tags` out.",
            ),
            (
                pad is not None and not 0 <= pad < self.vocab_size,
                f"pad_token_id={pad} is not in the vocabulary of {self.vocab_size} tokens: use the tokenizer's.",
            ),
            (first < 0, f"`position_offset` must not be negative, got {first}."),
            (rows <= first, f"max_position_embeddings={rows} leaves no position after position_offset={first}."),
            (first and pad is None, f"position_offset={first} counts tokens without padding: give `pad_token_id`."),
        ):
            if is_wrong:
                raise ValueError(message)

    def save_pretrained(self, save_directory, **kwargs):
        """
        As in `PreTrainedConfig`; a student that was pruned, perhaps from an encoder of another type, brings its code
        along ([`save_student_code`]), so that `trust_remote_code=True` loads it where hf_mwp is not installed.
        """
        super().save_pretrained(save_directory, **kwargs)
        # Otherwise transformers copies the code of the folder that it was loaded from.
        if self.is_pruned and not self.is_remote_code():
            save_student_code(save_directory)

    @property
    def is_pruned(self) -> bool:
        """Return whether heads or neurons were cut, as far as the sizes tell."""
        counts = (self.num_attention_heads, self.intermediate_size)
        return bool(self.cut_heads) or any(isinstance(count, list) for count in counts)

    @property
    def embedding_width(self) -> int:
        """Width of the embeddings: `embedding_size`, or `hidden_size` if they are not projected."""
        return self.hidden_size if self.embedding_size is None else self.embedding_size

    @property
    def heads_per_layer(self) -> list[int]:
        """Number of attention heads of each layer."""
        return self._per_layer("num_attention_heads")

    @property
    def neurons_per_layer(self) -> list[int]:
        """Number of feed-forward neurons of each layer."""
        return self._per_layer("intermediate_size")

    def _per_layer(self, name):
        value = getattr(self, name)
        counts = [value] * self.num_hidden_layers if isinstance(value, int) else list(value)
        if len(counts) != self.num_hidden_layers or min(counts, default=0) < 0:
            raise ValueError(
                f"`{name}` must be one integer >= 0 for all layers or a list with one per layer, got {value}, "
                f"which are {len(counts)} values for num_hidden_layers={self.num_hidden_layers}."
            )
        return counts
