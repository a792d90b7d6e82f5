"""From options to a solver and its processor."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..usage_error import UsageError
from .solver_loading import check_folder, load_solver
from .solver_options import ModelArguments, parse_layers


if TYPE_CHECKING:
    from transformers import PreTrainedModel

    from ..data.batches.mwp_processor import MwpProcessor
    from ..models import MwpSolver
    from .pretraining_options import StudentModelArguments

# Dropouts of layers in the configurations of BERT and its like, and of DistilBERT.
DROPOUTS = ("hidden_dropout_prob", "attention_probs_dropout_prob", "dropout", "attention_dropout")


def build_solver(
    args: ModelArguments, rows: Iterable[Mapping[str, Any]], language: str, numerals: bool | None = None
) -> tuple[MwpSolver, MwpProcessor]:
    """
    Makes the solver that the options describe.

    Args:
        args ([`ModelArguments`]): The options.
        rows (`Iterable[Mapping]`): Training rows, whose constants become output symbols.
        language (`str`): Language of the data.
        numerals (`bool`, *optional*): Whether number words are numbers.

    Raises:
        UsageError: a folder that is no model, or one that cannot be downloaded.
    """
    if args.solver is not None:
        model, processor = load_solver(args.solver, **args.bottleneck_fields)
        set_dropout(model.encoder.config, args.dropout)
        if args.dropout is not None:
            model.decoder.config.dropout = args.dropout
            _apply_dropout(model, args.dropout)
        if args.decoder_dropout is not None:
            model.decoder.config.dropout = args.decoder_dropout
            _apply_dropout(model.decoder, args.decoder_dropout)
        if args.constants:
            processor.vocabulary = processor.vocabulary.with_constants(args.constants)
            model.decoder.set_constants(processor.vocabulary.constants)
        return model, processor

    from ..data import problem_from_row
    from ..data.batches.mwp_processor import MwpProcessor
    from ..models import MwpSolver

    source = args.tokenizer or args.encoder
    check_tokenizer(source)
    try:
        processor = MwpProcessor.build(
            source,
            (problem_from_row(row, numerals=numerals) for row in rows),
            min_constant_count=args.min_constant_count,
            language=args.language or language,
            numerals=numerals,
            indexed_numbers=numbers_have_tokens(args),
            max_length=args.max_length,
        )
    except OSError as error:
        raise UsageError(f"The tokenizer {source} cannot be loaded: {error}") from error
    processor.vocabulary = processor.vocabulary.with_constants(args.constants or ())
    encoder = _encoder(args, processor)
    decoder_fields = dict(args.decoder_config or {})
    dropout = args.dropout if args.decoder_dropout is None else args.decoder_dropout
    if dropout is not None:
        decoder_fields.setdefault("dropout", dropout)
    solver = MwpSolver.from_encoder_decoder_pretrained(
        encoder,
        processor,
        decoder_kwargs=decoder_fields,
        **args.bottleneck_fields,
    )
    return solver, processor


def _encoder(args: ModelArguments, processor: MwpProcessor) -> PreTrainedModel:
    from ..data.training_lineage import inherit_training_texts
    from ..models import MwpStudentConfig, MwpStudentModel

    if args.encoder is None:
        fields = {"vocab_size": len(processor.tokenizer), "pad_token_id": processor.tokenizer.pad_token_id or 0}
        config = MwpStudentConfig(**(fields | args.encoder_config))
        if args.attn_implementation is not None:
            config._attn_implementation = args.attn_implementation
        set_dropout(config, args.dropout)
        return MwpStudentModel(config, add_pooling_layer=False)
    options = {} if args.attn_implementation is None else {"attn_implementation": args.attn_implementation}
    try:
        encoder = load_encoder(args.encoder, args.dropout, **options)
    except OSError as error:
        raise UsageError(f"The encoder {args.encoder} cannot be loaded: {error}") from error
    layers = parse_layers(args.encoder_layers)
    if layers is None:
        return encoder
    student = MwpStudentModel.from_encoder(encoder, layers=layers, add_pooling_layer=False)
    inherit_training_texts(student, encoder)
    return student


def numbers_have_tokens(args: ModelArguments | StudentModelArguments) -> bool:
    """Whether numbers have a token each: as the options say, or else as the processor beside the encoder has it."""
    if args.indexed_numbers is not None or args.encoder is None:
        return bool(args.indexed_numbers)
    from transformers.utils import cached_file

    from ..data.batches.mwp_processor import MwpProcessor

    # In a folder or on the Hub, where most encoders have no such file.
    path = cached_file(args.encoder, MwpProcessor.file_name, _raise_exceptions_for_missing_entries=False)
    if path is None:
        return False
    try:
        return bool(json.loads(Path(path).read_text(encoding="utf-8"))["indexed_numbers"])
    except (ValueError, KeyError, TypeError) as error:
        raise UsageError(f"{path} is no file of a processor: {error}.") from error


def load_encoder(source: str, dropout: float | None, **options) -> PreTrainedModel:
    """
    Loads an encoder.

    Args:
        source (`str`): Folder or Hub id.
        dropout (`float`, *optional*): Its dropout; its own if `None`.
        options: Arguments of `AutoModel.from_pretrained`.

    Raises:
        UsageError: a folder that is no model, or an encoder whose dropout cannot be set.
        OSError: it cannot be loaded.
    """
    from transformers import AutoConfig, AutoModel

    check_folder(source)
    config = AutoConfig.from_pretrained(source)
    set_dropout(config, dropout)
    return AutoModel.from_pretrained(source, config=config, dtype="float32", use_safetensors=True, **options)


def set_dropout(config: Any, dropout: float | None) -> None:
    """
    Writes a dropout into an encoder's configuration, whatever its fields are called; `None` leaves it.

    Raises:
        UsageError: no field has a name that is known.
    """
    if dropout is None:
        return
    names = [name for name in DROPOUTS if hasattr(config, name)]
    if not names:
        raise UsageError(f"The dropout of an encoder of type {config.model_type!r} cannot be set: leave it out.")
    for name in names:
        setattr(config, name, dropout)


def _apply_dropout(model: PreTrainedModel, dropout: float) -> None:
    """Gives a loaded model's modules another dropout; those that read it from their config have it already."""
    from torch import nn

    for module in model.modules():
        if isinstance(module, nn.Dropout):
            module.p = dropout


def check_tokenizer(source: str) -> None:
    """Raises `UsageError` for a folder without a tokenizer."""
    path = Path(source)
    if path.is_dir() and not any((path / name).exists() for name in ("tokenizer.json", "vocab.txt", "vocab.json")):
        raise UsageError(f"{source} has no tokenizer (tokenizer.json or vocab.txt); give one with --tokenizer.")
    if not path.exists() and source.startswith((".", "/", "~")):
        raise UsageError(f"There is no folder {source}.")
