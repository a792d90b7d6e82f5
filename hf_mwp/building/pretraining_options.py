"""Options of `hf-mwp pretrain` that are not the trainer's."""

from __future__ import annotations

from dataclasses import dataclass, field

from ..option_checks import check_at_least_one, check_share
from .encoder_names import find_encoder
from .solver_options import check_max_length, parse_layers, parse_mapping


NO_TAGGER = "none"
PROJECTED_SIZES = ("hidden_size", "intermediate_size", "num_attention_heads")


@dataclass
class CorpusArguments:
    """
    The texts, and what tags them.

    Args:
        corpus (`list[str]`):
            Files (`.txt`, `.jsonl`, also with `.gz`) and names of data sets, whose training parts are read.
        data_dir (`str`, *optional*):
            Folder of the data sets' files, if they are not where the loaders look.
        exclude (`list[str]`, *optional*):
            Data sets or files whose texts must not occur, whatever their numbers: those of test sets.
        tagger (`str`, *optional*, defaults to `"jieba"`):
            `"jieba"`, `"ltp:"` and a folder or Hub id, or `"none"`, which needs `pos_loss_weight=0`. With a tagger and
            `pos_loss_weight=0` the tags say which words are quantities, and nothing else.
        tag_cache (`str`, *optional*):
            Folder for the tags, to be shared by runs; `tags` in the output folder by default.
        max_texts (`int`, *optional*):
            Use only so many texts, for a quick try.
    """

    _argument_group_name = "corpus"

    corpus: list[str] = field(
        default_factory=list,
        metadata={"help": "Text files (.txt, .jsonl, also .gz) and names of data sets (must be given)."},
    )
    data_dir: str | None = field(default=None, metadata={"help": "Folder of the data sets' files."})
    exclude: list[str] | None = field(
        default=None, metadata={"help": "Data sets or files whose texts must not occur, whatever their numbers."}
    )
    tagger: str = field(
        default="jieba",
        metadata={"help": "jieba, ltp:FOLDER or ltp:HUB_ID, or none (which needs pos_loss_weight 0)."},
    )
    tag_cache: str | None = field(
        default=None, metadata={"help": "Folder for the tags, to be shared by runs; in the output folder otherwise."}
    )
    max_texts: int | None = field(default=None, metadata={"help": "Use only so many texts, for a quick try."})

    def __post_init__(self):
        if not self.corpus:
            raise ValueError("a `corpus` must be given: text files, or names of data sets.")
        check_at_least_one(self, "max_texts")


@dataclass
class StudentModelArguments:
    """
    The encoder to pretrain: from random weights, from another encoder, or some layers of it.

    Args:
        encoder (`str`, *optional*):
            Hub id or folder of a BERT- or RoBERTa-like encoder, of a student, or of a solver, whose encoder is taken.
        encoder_layers (`str`, *optional*):
            Layers of the encoder to keep: a number (`"3"`: the first three) or indices (`"0,2,4"`).
        project_to (`dict`, *optional*):
            Sizes of a student that is narrower than the `encoder` and starts as its projection
            ([`~distillation.project_student`], fitted on a sample of the texts): `hidden_size`, `intermediate_size`,
            `num_attention_heads`; `{}` is 312, 1200 and 12, the paper's student, of the encoder's first three layers
            unless `encoder_layers` says otherwise.
        encoder_config (`dict`, *optional*):
            Without `encoder`: fields of [`MwpStudentConfig`] for random weights (a mapping in YAML, JSON as a flag);
            `{}` is the paper's student.
        tokenizer (`str`, *optional*):
            Hub id or folder of the tokenizer; that of the encoder by default.
        language (`str`, *optional*, defaults to `"zh"`):
            Language of the texts, `"zh"` or `"en"`.
        numerals (`bool`, *optional*):
            Whether number words are numbers; by default in English only.
        indexed_numbers (`bool`, *optional*):
            Mask numbers as `[NUM0]`, `[NUM1]`, ... instead of `[NUM]`; by default as the encoder was pretrained, else
            `[NUM]`. Solvers built on the result do the same.
        max_length (`int`, *optional*, defaults to 512):
            Most tokens of a text; the rest is cut off.
        dropout (`float`, *optional*):
            Dropout of the model; its own by default.
        new_pos_head (`bool`, *optional*, defaults to `False`):
            Start the tagging head anew, for an encoder that was pretrained on the tags of another tagger.
        freeze_encoder (`bool`, *optional*, defaults to `False`):
            Train the heads alone: how well an encoder's states tell the tags as they are.
        attn_implementation (`str`, *optional*):
            `"sdpa"` or `"eager"`.
    """

    _argument_group_name = "model"

    encoder: str | None = field(
        default=None, metadata={"help": "Hub id or folder of a BERT- or RoBERTa-like encoder, a student or a solver."}
    )
    encoder_layers: str | None = field(
        default=None, metadata={"help": "Layers to keep: a number (3: the first three) or indices (0,2,4)."}
    )
    project_to: dict | str | None = field(
        default=None,
        metadata={
            "help": "Start as a projection of the encoder onto these sizes, as JSON: hidden_size, intermediate_size, "
            "num_attention_heads ({}: 312, 1200, 12)."
        },
    )
    encoder_config: dict | str | None = field(
        default=None,
        metadata={
            "help": "Without an encoder: fields of MwpStudentConfig for random weights, as JSON ({}: defaults)."
        },
    )
    tokenizer: str | None = field(
        default=None, metadata={"help": "Hub id or folder of the tokenizer; the encoder's if not given."}
    )
    language: str = field(default="zh", metadata={"help": "Language of the texts.", "choices": ["zh", "en"]})
    numerals: bool | None = field(
        default=None, metadata={"help": "Whether number words are numbers; in English only if not given."}
    )
    indexed_numbers: bool | None = field(
        default=None,
        metadata={
            "help": "Mask numbers as [NUM0], [NUM1], ... instead of [NUM] for all; as the encoder was pretrained if "
            "not given."
        },
    )
    max_length: int = field(default=512, metadata={"help": "Most tokens of a text."})
    dropout: float | None = field(default=None, metadata={"help": "Dropout; the model's own if not given."})
    new_pos_head: bool = field(
        default=False, metadata={"help": "Start the tagging head anew: the encoder's has labels of another tagger."}
    )
    freeze_encoder: bool = field(
        default=False, metadata={"help": "Train the heads alone: how well the encoder's states tell the tags."}
    )
    attn_implementation: str | None = field(default=None, metadata={"help": "Attention: sdpa or eager."})

    def __post_init__(self):
        self.encoder_config = parse_mapping("encoder_config", self.encoder_config)
        self.project_to = parse_mapping("project_to", self.project_to)
        if self.project_to is not None:
            unknown = set(self.project_to) - set(PROJECTED_SIZES)
            if unknown or self.encoder is None:
                fault = f"knows no {min(unknown)!r}" if unknown else "needs an `encoder` to project"
                raise ValueError(f"`project_to` {fault}; its fields are {', '.join(PROJECTED_SIZES)}.")
        if (self.encoder is None) == (self.encoder_config is None):
            given = "none is" if self.encoder is None else "both are"
            raise ValueError(f"either `encoder` or `encoder_config` says where to start from; {given} given.")
        if self.encoder_config is not None and self.tokenizer is None:
            raise ValueError("an encoder from random weights (`encoder_config`) needs a `tokenizer`.")
        if self.encoder_config is not None and self.encoder_layers is not None:
            raise ValueError("`encoder_layers` belongs to `encoder`; with random weights say `num_hidden_layers`.")
        check_share(self, "dropout")
        check_max_length(self)
        parse_layers(self.encoder_layers, "encoder_layers")
        self.encoder, self.tokenizer = find_encoder(self.encoder), find_encoder(self.tokenizer)
