"""Options of the encoder of a solver or student, and functions that load and change encoders."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from hf_mwp.utils.checks import check_options, check_share
from hf_mwp.utils.option import option
from hf_mwp.utils.usage_error import UsageError
from hf_mwp.utils.yaml_values import parse_mapping

from .model_sources import (
    check_fields,
    load_config,
    load_pretrained,
    locate_encoder,
    locate_tokenizer,
    resolve_encoder,
    solver_class,
)


if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerBase

    from hf_mwp.compress.models import MwpStudentConfig
    from hf_mwp.solver.batches.mwp_processor import MwpProcessor

# Dropout fields in the configurations of BERT-like models and of DistilBERT.
DROPOUTS = ("hidden_dropout_prob", "attention_probs_dropout_prob", "dropout", "attention_dropout", "dropout_rate")
# Number of problems to which a projection is fitted, and batch size of their encoding.
SAMPLE_SIZE = 1000
SAMPLE_BATCH = 32


@dataclass
class EncoderArguments:
    """Options of an encoder (pretrained or with random weights) and of its text processing."""

    _argument_group_name = "model"
    _starts = ("encoder", "encoder_config")

    encoder: str | None = option(
        None,
        "Hub id or folder of a BERT- or RoBERTa-like encoder or a student; to pretrain, also of a solver, whose "
        "encoder is used.",
        common=True,
        locate=locate_encoder,
    )
    encoder_layers: int | str | list[int] | None = option(
        None, "Layers of the encoder to keep: a number (3: the first three) or indices (0,2,4).", common=True
    )
    encoder_config: dict | str | None = option(
        None,
        "Instead of encoder: fields of MwpStudentConfig for random weights, a mapping in YAML or JSON "
        "({}: the 3-layer student of the paper).",
        common=True,
    )
    tokenizer: str | None = option(
        None, "Hub id or folder of the tokenizer; the encoder's if not given.", common=True, locate=locate_tokenizer
    )
    language: str | None = option(
        None, "Language of the problems; the language of the data if not given.", common=True, choices=("zh", "en")
    )
    indexed_numbers: bool | None = option(
        None,
        "Mask numbers as [NUM0], [NUM1], ... instead of [NUM], which speeds up training from random weights; as the "
        "encoder was pretrained if not given. Solvers built on the result do the same.",
    )
    max_length: int | None = option(
        None, "Maximum number of tokens of a text; longer texts are cut off. 512 if not given."
    )
    dropout: float | None = option(None, "Dropout of the whole model; each part keeps its own if not given.")
    attn_implementation: str | None = option(None, "Attention implementation of the encoder: sdpa or eager.")

    def __post_init__(self):
        check_options(self)
        self.encoder_config = parse_mapping("encoder_config", self.encoder_config)
        check_share(self, "dropout")
        # Two tokens are special.
        if self.max_length is not None and self.max_length < 3:
            raise ValueError(f"`max_length` must be at least 3, got {self.max_length}.")
        given_starts = [name for name in self._starts if getattr(self, name) is not None]
        if len(given_starts) != 1:
            starts = " or ".join(f"`{name}`" for name in self._starts)
            raise ValueError(f"exactly one of {starts} must be given, got {' and '.join(given_starts) or 'none'}.")
        if self.encoder_config is not None and self.tokenizer is None:
            raise ValueError("random weights (`encoder_config`) need a `tokenizer`.")
        if self.encoder_config is not None and self.encoder_layers is not None:
            raise ValueError("`encoder_layers` applies only to `encoder`; set `num_hidden_layers` of random weights.")
        parse_layers(self.encoder_layers, "encoder_layers")
        self.encoder = resolve_encoder(self.encoder)
        self.tokenizer = resolve_encoder(self.tokenizer)

    def random_config(self, tokenizer: PreTrainedTokenizerBase, **fields) -> MwpStudentConfig:
        """Return the configuration of an encoder with random weights; `fields` override `encoder_config`."""
        from hf_mwp.compress.models import MwpStudentConfig

        check_fields("encoder_config", MwpStudentConfig(), self.encoder_config)
        sizes = {"vocab_size": len(tokenizer), "pad_token_id": tokenizer.pad_token_id or 0}
        config = MwpStudentConfig(**(sizes | self.encoder_config | fields))
        if self.attn_implementation is not None:
            config._attn_implementation = self.attn_implementation
        set_dropout(config, self.dropout)
        return config

    def uses_indexed_numbers(self) -> bool:
        """Return `indexed_numbers`; if it is not given, the setting of the processor saved with the encoder."""
        if self.indexed_numbers is not None or self.encoder is None:
            return bool(self.indexed_numbers)
        from hf_mwp.runtime.text_reader import read_fields
        from hf_mwp.solver.batches.mwp_processor import MwpProcessor
        from hf_mwp.utils.downloads import find_beside

        # Most encoders have no processor file.
        path = find_beside(self.encoder, MwpProcessor.file_name)
        return path is not None and read_fields(path).get("indexed_numbers", False)


def load_encoder(
    source: str, dropout: float | None, attention: str | None = None, with_heads: bool = False
) -> PreTrainedModel:
    """Load an encoder. `with_heads` keeps its pretraining heads and also accepts a solver, whose encoder is loaded."""
    from transformers import AutoModel, AutoModelForMaskedLM, AutoModelForPreTraining

    from hf_mwp.utils.provenance import inherit_training_texts

    config = load_config(source)
    if with_heads and solver_class(config.model_type) is not None:
        solver = load_pretrained(AutoModel, source)
        inherit_training_texts(solver.encoder, solver)
        set_dropout(solver.encoder.config, dropout)
        if attention is not None:
            solver.encoder.set_attn_implementation(attention)
        return solver.encoder
    set_dropout(config, dropout)
    auto_class = AutoModel
    if with_heads and config.architectures:
        if config.architectures[0].endswith("ForPreTraining"):
            auto_class = AutoModelForPreTraining
        elif config.architectures[0].endswith("ForMaskedLM"):
            auto_class = AutoModelForMaskedLM
    return load_pretrained(auto_class, source, config=config, attn_implementation=attention)


def derive_student(student_class: Any, encoder: PreTrainedModel, **fields) -> PreTrainedModel:
    """Create a student of this class with `from_encoder`. It inherits the record of the encoder's training texts."""
    from hf_mwp.utils.provenance import inherit_training_texts

    student = student_class.from_encoder(encoder, **fields)
    inherit_training_texts(student, encoder)
    return student


def keep_layers(encoder: PreTrainedModel, layers: int | list[int] | None) -> PreTrainedModel:
    """Keep any layers of BERT-like encoders, or first layers of other types. Raises `UsageError` if impossible."""
    from hf_mwp.compress.models import MwpStudentModel
    from hf_mwp.compress.models.mwp_student.conversion_mwp_student import SOURCES
    from hf_mwp.utils.provenance import inherit_training_texts

    if layers is None:
        return encoder
    if encoder.config.model_type in SOURCES:
        return derive_student(MwpStudentModel, encoder, layers=layers, add_pooling_layer=False)
    num_layers = layers
    if isinstance(layers, list):
        num_layers = len(layers)
    total = encoder.config.num_hidden_layers
    if num_layers > total or (isinstance(layers, list) and layers != list(range(num_layers))):
        raise UsageError(
            f"Cannot keep the layers {layers} of {type(encoder).__name__}: only its first layers can be kept. "
            f"Pass a number of at most {total}."
        )
    config = copy.deepcopy(encoder.config)
    for name, value in config.to_dict().items():
        if isinstance(value, list) and len(value) == total:
            setattr(config, name, value[:num_layers])
    config.num_hidden_layers = num_layers
    shortened = type(encoder)(config)
    # The weights of the other layers are unexpected.
    shortened.load_state_dict(encoder.state_dict(), strict=False)
    inherit_training_texts(shortened, encoder)
    return shortened


def set_dropout(config: Any, dropout: float | None) -> None:
    """Set the dropout fields of an encoder's configuration, whatever their names; `None` changes nothing."""
    if dropout is None:
        return
    names = [name for name in DROPOUTS if hasattr(config, name)]
    if not names:
        raise UsageError(f"The dropout of an encoder of type {config.model_type!r} cannot be set. Omit this option.")
    for name in names:
        setattr(config, name, dropout)


def project_on_problems(
    encoder: PreTrainedModel, processor: MwpProcessor, problems: Iterable, layers: int | list[int], **fields
) -> PreTrainedModel:
    """Create a student of other widths, fitted to layers of the encoder on problems; see [`project_student`]."""
    from hf_mwp.compress.distillation import project_student

    # Sort problems by length, which reduces padding.
    problems = sorted(problems, key=lambda problem: len(problem.text))
    sample = []
    for start in range(0, len(problems), SAMPLE_BATCH):
        batch = problems[start : start + SAMPLE_BATCH]
        sample.append(processor(batch))
    return project_student(encoder, layers=layers, sample=sample, **fields)


def parse_layers(text: str | int | Sequence[int] | None, name: str = "layers") -> int | list[int] | None:
    """Parse `"3"` as a number of layers, `"0,2,4"` as indices. Raises `ValueError` for any other value."""
    if text is None:
        return None
    try:
        if isinstance(text, list | tuple):
            layers = list(map(int, text))
        elif "," in str(text):
            layers = list(map(int, text.split(",")))
        else:
            layers = int(text)
        if isinstance(layers, int):
            is_valid = layers >= 1
        else:
            is_valid = min(layers, default=-1) >= 0
        if not is_valid:
            raise ValueError(layers)
    except ValueError:
        raise ValueError(f"`{name}` must be a number (3: the first three) or indices (0,2,4), got {text!r}.") from None
    return layers
