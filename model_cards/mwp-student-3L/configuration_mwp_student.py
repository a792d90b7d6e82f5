"""Configuration of the MWP student encoder."""

from huggingface_hub.dataclasses import strict
from transformers import PreTrainedConfig

from .remote_code import save_student_code


@strict
class MwpStudentConfig(PreTrainedConfig):
    r"""
    Configuration of [`MwpStudentModel`], a BERT-shaped encoder (post-layer-norm) with its own number of heads and
    feed-forward neurons in each layer, so that a pruned encoder loads with plain `from_pretrained`. The defaults are
    the compact model of Ming et al., "A Compact Model for Mathematics Problem Representations Distilled from BERT"
    (AAAI 2025): 3 layers, hidden size 312, feed-forward size 1200, 12 heads.

    Args:
        vocab_size (`int`, *optional*, defaults to 21128): Size of the vocabulary. The default is Chinese BERT's.
        hidden_size (`int`, *optional*, defaults to 312): Width of the encoder.
        embedding_size (`int`, *optional*):
            Width of the embeddings, projected to `hidden_size` as in ELECTRA. If `None`, they are `hidden_size` wide.
        num_hidden_layers (`int`, *optional*, defaults to 3): Number of layers.
        num_attention_heads (`int` or `list[int]`, *optional*, defaults to 12):
            Attention heads of every layer, or one number per layer. A layer with 0 heads keeps its output bias.
        head_dim (`int`, *optional*):
            Width of one head. Defaults to `hidden_size // num_attention_heads`; required if `num_attention_heads` is a
            list or 0, because heads keep their width when others are removed.
        intermediate_size (`int` or `list[int]`, *optional*, defaults to 1200):
            Feed-forward neurons of every layer, or one number per layer. A layer with 0 neurons keeps its output bias.
        hidden_act (`str`, *optional*, defaults to `"gelu"`): Activation of feed-forward networks and of heads.
        hidden_dropout_prob (`float`, *optional*, defaults to 0.1): Dropout of the embeddings and sublayer outputs.
        attention_probs_dropout_prob (`float`, *optional*, defaults to 0.1): Dropout of the attention probabilities.
        classifier_dropout (`float`, *optional*): Dropout before the classifier; defaults to `hidden_dropout_prob`.
        classifier_activation (`str`, *optional*, defaults to `"tanh"`):
            Activation of the pooler: tanh in BERT and RoBERTa, ReLU in DistilBERT, GELU in ELECTRA.
        max_position_embeddings (`int`, *optional*, defaults to 512):
            Rows of the position table. The longest input has `max_position_embeddings - position_offset` tokens.
        type_vocab_size (`int`, *optional*, defaults to 2): Number of token types (segments).
        position_offset (`int`, *optional*, defaults to 0):
            With 0, positions are 0, 1, 2, ..., padding included, as in BERT. A larger number counts as RoBERTa does:
            the first token that is not `pad_token_id` is at `position_offset`, padding at `position_offset - 1`.
        initializer_range (`float`, *optional*, defaults to 0.02): Standard deviation of the initial weights.
        layer_norm_eps (`float`, *optional*, defaults to 1e-12): Epsilon of the layer norms.
        pad_token_id (`int`, *optional*, defaults to 0): Id of the padding token.
        bos_token_id, eos_token_id (*optional*): Ids of the first and last token of a text.
        tie_word_embeddings (`bool`, *optional*, defaults to `True`):
            Whether the masked-language-modelling head shares its matrix with the word embeddings.
        num_pos_tags (`int`, *optional*, defaults to 0):
            Number of part-of-speech labels, for [`MwpStudentForPreTraining`]. If 0, the length of `pos_labels`.
        pos_labels (`list[str]`, *optional*): The labels (`"B-n"`, `"I-n"`, ...), in the order of the tagging head.
        pos_tagger (`str`, *optional*): Name of the tagger that the labels come from.
        pos_loss_weight (`float`, *optional*, defaults to 5.0):
            Weight of the tagging loss in [`MwpStudentForPreTraining`]; masked language modelling has weight 1.
        sparse_prediction (`bool`, *optional*, defaults to `False`):
            Whether a forward pass with labels scores the vocabulary only at the labelled tokens, which saves most of
            the work of pretraining. `logits` is then `(labelled tokens, vocab_size)`, or `None` with tags alone.
        cut_heads (`list[list[int]]`, *optional*): Pruned attention heads of each layer, by their original indices.
        source_type (`str`, *optional*): Type of the encoder that the student was converted from, such as `"bert"`.

    Raises:
        `ValueError`, `StrictDataclassError`: a field has a wrong type or value, or fields contradict each other.

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
    source_type: str | None = None

    def __post_init__(self, **kwargs):
        if self.head_dim is None:
            heads = self.num_attention_heads
            if not isinstance(heads, int) or heads < 1 or self.hidden_size % heads:
                sizes = f"hidden_size={self.hidden_size} is not divisible by num_attention_heads={heads}"
                raise ValueError(f"{sizes}. Set `head_dim`, the width of one head before heads were removed.")
            self.head_dim = self.hidden_size // heads
        if self.pos_labels is not None and not self.num_pos_tags:
            self.num_pos_tags = len(self.pos_labels)
        if not self.is_remote_code():
            # These fields describe the folder, not the model.
            kwargs.pop("auto_map", None)
            kwargs.pop("stock_config", None)
        super().__post_init__(**kwargs)

    def validate_architecture(self):
        """Check that the fields are possible and do not contradict each other. `@strict` calls this method."""
        for name in ("num_attention_heads", "intermediate_size"):
            self._per_layer(name)
        if min(self.vocab_size, self.hidden_size, self.num_hidden_layers, self.head_dim) < 1:
            raise ValueError("`vocab_size`, `hidden_size`, `num_hidden_layers`, `head_dim` must be at least 1.")
        labels = self.pos_labels
        if labels is not None and len(labels) != self.num_pos_tags:
            raise ValueError(f"`pos_labels` has {len(labels)} labels, but num_pos_tags={self.num_pos_tags}.")
        pad = self.pad_token_id
        if pad is not None and not 0 <= pad < self.vocab_size:
            raise ValueError(f"pad_token_id={pad} is not in the vocabulary of {self.vocab_size} tokens.")
        first = self.position_offset
        if self.max_position_embeddings <= first:
            rows = self.max_position_embeddings
            raise ValueError(f"max_position_embeddings={rows} leaves no position after position_offset={first}.")
        if first and pad is None:
            raise ValueError(f"position_offset={first} counts tokens without padding. Set `pad_token_id`.")

    def save_pretrained(self, save_directory, **kwargs):
        """
        Save the config as `PreTrainedConfig` does, with the student's code ([`save_student_code`]), so that
        `trust_remote_code=True` loads the student in a process that has not imported hf_mwp.
        """
        super().save_pretrained(save_directory, **kwargs)
        # Otherwise, transformers copies the code of the folder that the config was loaded from.
        if not self.is_remote_code():
            save_student_code(save_directory)

    @property
    def is_pruned(self) -> bool:
        """`True` if the sizes show that heads or neurons were cut."""
        if isinstance(self.num_attention_heads, list) or isinstance(self.intermediate_size, list):
            return True
        return bool(self.cut_heads)

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
                f"`{name}` must be one integer >= 0 or a list with one per layer, got {value}, which are "
                f"{len(counts)} values for num_hidden_layers={self.num_hidden_layers}."
            )
        return counts
