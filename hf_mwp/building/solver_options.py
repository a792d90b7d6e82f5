"""Options that say what solver a command builds."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

from ..option_checks import check_at_least_one, check_share
from .encoder_names import find_encoder


# What a solver has already, and options cannot change.
OF_NEW_SOLVERS = (
    "encoder_layers",
    "tokenizer",
    "language",
    "indexed_numbers",
    "max_length",
    "min_constant_count",
    "decoder_config",
    "attn_implementation",
)


@dataclass
class ModelArguments:
    """
    The solver to train: a pretrained encoder or one from random weights with a new decoder, or a solver that exists.

    Args:
        encoder (`str`, *optional*):
            Hub id or folder of a BERT- or RoBERTa-like encoder, or a name that [`find_encoder`] knows.
        encoder_layers (`str`, *optional*):
            Layers of the encoder to keep: a number (`"3"`: the first three) or indices (`"0,2,4"`).
        encoder_config (`dict`, *optional*):
            Without `encoder`: fields of [`MwpStudentConfig`] for an encoder from random weights (a mapping in YAML,
            JSON as a flag). `{}` is the 3-layer student.
        tokenizer (`str`, *optional*):
            Hub id or folder of the tokenizer; that of the encoder by default.
        solver (`str`, *optional*):
            Folder or Hub id of a solver to go on training, instead of all of the above. Of what is below it takes
            dropouts, `constants` and bottleneck networks; the rest is refused.
        language (`str`, *optional*):
            Language of the problems, `"zh"` or `"en"`; that of the data by default.
        indexed_numbers (`bool`, *optional*):
            Mask numbers as `[NUM0]`, `[NUM1]`, ... instead of `[NUM]`: from random weights this learns much faster. By
            default as the encoder was pretrained (`hf-mwp pretrain`), else `[NUM]`.
        max_length (`int`, *optional*, defaults to 512):
            Most tokens of a text.
        min_constant_count (`int`, *optional*, defaults to 5):
            Training problems in which a constant must occur to be an output symbol.
        constants (`list[str]`, *optional*):
            Numbers that are to be output symbols too, beside those counted or those that the `solver` has.
        dropout (`float`, *optional*):
            Dropout of encoder and decoder; each model's own by default.
        decoder_dropout (`float`, *optional*):
            Dropout of the decoder, if it is to be another.
        decoder_config (`dict`, *optional*):
            Fields of [`GTSConfig`] for the new decoder, such as `root_goal`.
        bottleneck_layers (`str`, *optional*):
            Encoder layers, from 1, after which bottleneck networks are put (`"2,4,6"`), also into a `solver`.
        bottleneck_size (`int`, *optional*):
            Their width, usually that of the student to come.
        attn_implementation (`str`, *optional*):
            Attention of the encoder: `"sdpa"` or `"eager"`.
    """

    _argument_group_name = "model"

    encoder: str | None = field(
        default=None, metadata={"help": "Hub id or folder of a BERT- or RoBERTa-like encoder."}
    )
    encoder_layers: str | None = field(
        default=None, metadata={"help": "Layers to keep: a number (3: the first three) or indices (0,2,4)."}
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
    solver: str | None = field(default=None, metadata={"help": "Folder or Hub id of a solver to go on training."})
    language: str | None = field(
        default=None, metadata={"help": "zh or en; that of the data if not given.", "choices": ["zh", "en"]}
    )
    indexed_numbers: bool | None = field(
        default=None,
        metadata={
            "help": "Mask numbers as [NUM0], [NUM1], ... instead of [NUM] for all; as the encoder was pretrained if "
            "not given."
        },
    )
    max_length: int | None = field(default=None, metadata={"help": "Most tokens of a text; 512 if not given."})
    min_constant_count: int | None = field(
        default=None,
        metadata={"help": "Training problems in which a constant must occur to be an output symbol; 5 if not given."},
    )
    dropout: float | None = field(
        default=None, metadata={"help": "Dropout of encoder and decoder; each model's own if not given."}
    )
    decoder_dropout: float | None = field(
        default=None, metadata={"help": "Dropout of the decoder, if it is to be another."}
    )
    constants: list[str] | None = field(
        default=None, metadata={"help": "Numbers to be output symbols too, also of a solver that exists."}
    )
    decoder_config: dict | str | None = field(
        default=None, metadata={"help": "Fields of GTSConfig for the new decoder, as JSON."}
    )
    bottleneck_layers: str | None = field(
        default=None, metadata={"help": "Encoder layers, from 1, to put bottleneck networks after (2,4,6)."}
    )
    bottleneck_size: int | None = field(
        default=None, metadata={"help": "Width of the bottleneck networks; the student's, as a rule."}
    )
    attn_implementation: str | None = field(
        default=None, metadata={"help": "Attention of the encoder: sdpa or eager."}
    )

    def __post_init__(self):
        self.encoder_config = parse_mapping("encoder_config", self.encoder_config)
        self.decoder_config = parse_mapping("decoder_config", self.decoder_config)
        check_share(self, "dropout", "decoder_dropout")
        check_at_least_one(self, "min_constant_count", "bottleneck_size")
        check_max_length(self)
        sources = [name for name in ("encoder", "encoder_config", "solver") if getattr(self, name) is not None]
        if len(sources) != 1:
            given = f"{' and '.join(sources)} are" if sources else "none is"
            raise ValueError(
                f"exactly one of `encoder`, `encoder_config` and `solver` says where to start from; {given} given."
            )
        if self.encoder_config is not None and self.tokenizer is None:
            raise ValueError("an encoder from random weights (`encoder_config`) needs a `tokenizer`.")
        if self.encoder_config is not None and self.encoder_layers is not None:
            raise ValueError("`encoder_layers` belongs to `encoder`; with random weights say `num_hidden_layers`.")
        unused = [name for name in OF_NEW_SOLVERS if self.solver is not None and getattr(self, name) is not None]
        if unused:
            raise ValueError(f"`{unused[0]}` does nothing with `solver`: leave one of them out.")
        self.encoder, self.tokenizer = find_encoder(self.encoder), find_encoder(self.tokenizer)
        self.max_length = 512 if self.max_length is None else self.max_length
        self.min_constant_count = 5 if self.min_constant_count is None else self.min_constant_count
        parse_layers(self.encoder_layers, "encoder_layers")
        if parse_layers(self.bottleneck_layers, "bottleneck_layers") is not None and self.bottleneck_size is None:
            raise ValueError(
                "`bottleneck_layers` need a `bottleneck_size`: the width of the student to come, as a rule."
            )
        if self.bottleneck_size is not None and self.bottleneck_layers is None:
            raise ValueError("`bottleneck_size` needs `bottleneck_layers`: after which layers, for example 4,8,12.")

    @property
    def bottleneck_fields(self) -> dict:
        """The fields of [`MwpSolverConfig`] for bottleneck networks; none if none are asked for."""
        layers = parse_layers(self.bottleneck_layers)
        if layers is None:
            return {}
        layers = [layers] if isinstance(layers, int) else layers
        return {"bottleneck_layers": layers, "bottleneck_size": self.bottleneck_size}


def check_max_length(options: Any) -> None:
    """Raises `ValueError` if `max_length` is given and has no room for a token between the two special ones."""
    if options.max_length is not None and options.max_length < 3:
        raise ValueError(f"`max_length` must be at least 3, not {options.max_length}.")


def parse_mapping(name: str, value: dict | str | None) -> dict | None:
    """A mapping as YAML gives it, or as JSON on the command line."""
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except ValueError as error:
            raise ValueError(f"`{name}` is no JSON: {error}.") from None
    if value is not None and not isinstance(value, dict):
        raise ValueError(f"`{name}` takes a mapping of fields, not {value!r}.")
    return value


def parse_layers(text: str | int | list[int] | None, option: str = "layers") -> int | list[int] | None:
    """
    Layers as [`MwpStudentModel.from_encoder`] takes them, from an option: `"3"` is the first three, `"0,2,4"` indices.

    Args:
        text (`str`, `int` or `list[int]`, *optional*): The option's value.
        option (`str`, *optional*, defaults to `"layers"`): Its name, for the message.

    Raises:
        ValueError: it is neither.
    """
    if text is None:
        return None
    try:
        if isinstance(text, list):
            layers = [int(index) for index in text]
        else:
            layers = [int(part) for part in text.split(",")] if "," in str(text) else int(text)
        if (layers < 1) if isinstance(layers, int) else (min(layers, default=-1) < 0):
            raise ValueError(layers)
    except ValueError:
        raise ValueError(f"`{option}` takes a number (3: the first three) or indices (0,2,4), not {text!r}.") from None
    return layers
