"""Options of solvers, and functions that build and load solvers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain, islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hf_mwp.runtime.numbers.masked_text import DEFAULT_READING, NUMBER_READINGS
from hf_mwp.utils.checked_types import checked
from hf_mwp.utils.checks import check_at_least_one, check_positive, check_share
from hf_mwp.utils.downloads import hub_options
from hf_mwp.utils.json_fields import read_mapping
from hf_mwp.utils.option import option
from hf_mwp.utils.usage_error import UsageError
from hf_mwp.utils.yaml_values import parse_mapping

from .encoder import EncoderArguments, keep_layers, load_encoder, parse_layers, set_dropout
from .model_sources import (
    check_fields,
    check_folder,
    load_config,
    load_tokenizer,
    loading,
    locate_solver,
    solver_class,
)


if TYPE_CHECKING:
    from transformers import PreTrainedModel

    from hf_mwp.solver.batches.mwp_processor import MwpProcessor
    from hf_mwp.solver.models import MwpSolver, Solver
    from hf_mwp.solver.models.decoder import Decoder

MAX_LENGTH = 512
# Options that cannot change an existing solver.
NEW_SOLVER_OPTIONS = (
    *("encoder_layers", "tokenizer", "language", "indexed_numbers", "max_length", "min_constant_count"),
    *("decoder", "decoder_config", "attn_implementation"),
)
# Name on the command line -> decoder class in `hf_mwp.solver.models`; the first one is the default.
DECODERS = {"gts": "GTSDecoder", "athena": "AthenaModel"}


@dataclass
class SolverArguments(EncoderArguments):
    """Options of the solver to train: an encoder with a new decoder, or an existing solver."""

    _starts = ("encoder", "encoder_config", "solver")

    solver: str | None = option(
        None,
        "Folder or Hub id of a solver to continue training, instead of an encoder. Other options can then change only "
        "dropouts, constants, the reading of numbers and bottleneck networks.",
        common=True,
        locate=locate_solver,
    )
    min_constant_count: int | None = option(
        None, "Minimum number of training problems with a constant that becomes an output symbol; 5 if not given."
    )
    constants: list[str] | None = option(
        None, "Further constants that are output symbols, in addition to the counted ones or the solver's."
    )
    number_reading: str | None = option(
        None,
        "Forms of numbers that the solver reads: original, plain, or people, with Chinese numerals before units in "
        "texts with digits; plain, or that of the solver, if not given.",
        choices=NUMBER_READINGS,
    )
    decoder_dropout: float | None = option(None, "Dropout of the decoder; not changed if not given.")
    decoder: str | None = option(
        None,
        "Decoder of a new solver: gts writes an expression tree from its root, athena grows a pool of expressions and "
        "scores each; gts if not given.",
        common=True,
        choices=tuple(DECODERS),
    )
    decoder_config: dict | str | None = option(
        None,
        "Fields of the new decoder's configuration (GTSConfig, AthenaConfig), such as root_goal, as a mapping in "
        "YAML or JSON.",
    )
    bottleneck_layers: int | str | list[int] | None = option(
        None, "Encoder layers after which bottleneck networks are inserted, counted from 1 (2,4,6), also in a solver."
    )
    bottleneck_size: int | None = option(
        None, "Width of the bottleneck networks, usually the width of the later student."
    )
    lora_rank: int | None = option(
        None,
        "Train LoRA adapters of this rank instead of the encoder's weights. All other parts are trained in full. The "
        "adapters are merged when the model is saved.",
    )
    lora_alpha: float | None = option(
        None, "The adapters' outputs are scaled by lora_alpha / rank; twice the rank if not given."
    )
    lora_dropout: float = option(0.0, "Dropout of the adapters' inputs.")
    lora_targets: list[str] | None = option(
        None,
        "Linear layers with adapters, from query, key, value, attention_output, intermediate and output; query and "
        "value if not given.",
    )

    def __post_init__(self):
        super().__post_init__()
        self.decoder_config = parse_mapping("decoder_config", self.decoder_config)
        check_share(self, "decoder_dropout", "lora_dropout")
        check_at_least_one(self, "min_constant_count", "bottleneck_size", "lora_rank")
        for name in NEW_SOLVER_OPTIONS:
            if self.solver is not None and getattr(self, name) is not None:
                raise ValueError(f"`{name}` has no effect with `solver`. Remove one of the two.")
        layers = parse_layers(self.bottleneck_layers, "bottleneck_layers")
        if (layers is None) != (self.bottleneck_size is None):
            raise ValueError("`bottleneck_layers` (such as 4,8,12) and `bottleneck_size` must be set together.")
        check_positive(self, "lora_alpha")
        if self.lora_rank is None and (self.lora_alpha, self.lora_dropout, self.lora_targets) != (None, 0.0, None):
            raise ValueError("`lora_alpha`, `lora_dropout` and `lora_targets` need `lora_rank`. Set it.")

    def add_lora(self, model: PreTrainedModel, tokens: Sequence[int] = ()) -> None:
        """Add LoRA adapters if `lora_rank` is set; see [`~models.lora.add_lora`]."""
        if self.lora_rank is not None:
            from hf_mwp.compress.models.lora import add_lora

            add_lora(model, self.lora_rank, self.lora_alpha, self.lora_dropout, self.lora_targets, tokens)

    @property
    def bottleneck_fields(self) -> dict[str, Any]:
        """Fields of [`MwpSolverConfig`] for bottleneck networks, if any."""
        layers = parse_layers(self.bottleneck_layers)
        if layers is None:
            return {}
        if isinstance(layers, int):
            layers = [layers]
        return {"bottleneck_layers": layers, "bottleneck_size": self.bottleneck_size}


def decoder_classes() -> dict[str, type[Decoder]]:
    """Return the classes of decoders by their names on the command line; loads PyTorch."""
    from hf_mwp.solver import models

    return {name: getattr(models, class_name) for name, class_name in DECODERS.items()}


@checked
def build_solver(
    rows: Iterable[Mapping[str, Any]],
    options: SolverArguments | None = None,
    parse_number_words: bool | None = None,
    **fields,
) -> tuple[MwpSolver, MwpProcessor]:
    """
    Create a solver to train, and its processor.

    Args:
        rows (`Iterable[Mapping]`): Training rows of [`load_mwp_dataset`], whose constants become output symbols.
        options ([`SolverArguments`], *optional*): Options, which `fields` override.
        parse_number_words (`bool`, *optional*): Whether number words are numbers; see [`MwpProcessor`].
        fields:
            Options of `hf-mwp train` that describe the solver. One of them must give the start: `encoder` (a folder
            or Hub id), `encoder_config` with `tokenizer` (random weights), or `solver` (an existing one).

    Returns:
        `tuple[MwpSolver, MwpProcessor]`: in fp32, on the CPU.

    Raises:
        UsageError: A folder is not a model folder, or a model cannot be downloaded.
        ValueError: Options contradict each other.

    Example:

    ```python
    >>> data = hf_mwp.load_mwp_dataset("math23k")
    >>> teacher, processor = hf_mwp.build_solver(
    ...     data["train"], encoder="hfl/chinese-roberta-wwm-ext", bottleneck_layers="4,8,12", bottleneck_size=312
    ... )
    ```
    """
    from hf_mwp.compress.models import MwpStudentModel
    from hf_mwp.solver import models
    from hf_mwp.solver.batches.mwp_processor import MwpProcessor
    from hf_mwp.solver.data import problem_from_row

    options = SolverArguments(**fields) if options is None else replace(options, **fields)
    if options.solver is not None:
        solver, processor = load_solver(options.solver, **options.bottleneck_fields)
        _update_solver(solver, processor, options)
        options.add_lora(solver, processor.number_token_ids)
        return solver, processor
    decoder = decoder_classes()[options.decoder or next(iter(DECODERS))]
    decoder_fields = options.decoder_config or {}
    check_fields("decoder_config", decoder.config_class(), decoder_fields)
    reading = options.number_reading or DEFAULT_READING
    language = options.language or "zh"
    problems = (problem_from_row(row, parse_number_words, language, reading) for row in rows)
    first_problems = list(islice(problems, 1))
    if options.language is None and first_problems:
        language = first_problems[0].language
    processor = MwpProcessor.build(
        load_tokenizer(options.tokenizer or options.encoder),
        chain(first_problems, problems),
        min_constant_count=options.min_constant_count or 5,
        language=language,
        parse_number_words=parse_number_words,
        number_reading=reading,
        indexed_numbers=options.uses_indexed_numbers(),
        max_length=options.max_length or MAX_LENGTH,
    )
    processor.vocabulary = processor.vocabulary.with_constants(options.constants or ())
    dropout = options.decoder_dropout
    if dropout is None:
        dropout = options.dropout
    if dropout is not None:
        decoder_fields = {"dropout": dropout} | decoder_fields
    if options.encoder is None:
        encoder = MwpStudentModel(options.random_config(processor.tokenizer), add_pooling_layer=False)
    else:
        encoder = load_encoder(options.encoder, options.dropout, options.attn_implementation)
        encoder = keep_layers(encoder, parse_layers(options.encoder_layers))
    solver = models.MwpSolver.from_encoder_decoder_pretrained(
        encoder,
        processor,
        decoder=decoder,
        decoder_kwargs=decoder_fields,
        **options.bottleneck_fields,
    )
    options.add_lora(solver, processor.number_token_ids)
    return solver, processor


def _update_solver(model: Solver, processor: MwpProcessor, options: SolverArguments) -> None:
    """Set the dropouts and the reading of numbers of a loaded solver, and add constants."""
    from torch import nn

    processor.number_reading = options.number_reading or processor.number_reading
    set_dropout(model.encoder.config, options.dropout)
    # The modules exist already, so changing the configuration is not enough.
    for name, dropout in (("", options.dropout), ("decoder", options.decoder_dropout)):
        if dropout is not None:
            model.decoder.config.dropout = dropout
            for module in model.get_submodule(name).modules():
                if isinstance(module, nn.Dropout):
                    module.p = dropout
                elif isinstance(getattr(module, "attention_dropout", None), int | float):
                    module.attention_dropout = dropout
    if options.constants:
        old_written = processor.vocabulary.written
        processor.vocabulary = processor.vocabulary.with_constants(options.constants)
        used = [constant for constant in old_written if constant not in processor.vocabulary.written]
        model.decoder.set_constants(processor.vocabulary.constants, used)


@checked
def load_solver(name: str | Path, **config_fields) -> tuple[Solver, MwpProcessor]:
    """
    Load a solver (any subclass of [`Solver`] that is registered with `AutoModel`) and its processor.

    Args:
        name (`str` or `Path`): Folder or Hub id.
        config_fields: Configuration fields to override, and download options (`revision`, `token`, `cache_dir`, ...).

    Raises:
        UsageError: The folder is missing or has no solver, the processor is missing or belongs to a different model, a
            download fails, or a file is damaged.

    Example:

    ```python
    >>> solver, processor = hf_mwp.load_solver("model_cards/mwp-student-3L-gts-math23k")
    ```
    """
    from hf_mwp.compress.models.architecture import count_positions
    from hf_mwp.runtime.solver_folder import CONFIG_NAME, SOLVER_TYPE, check_model_folder
    from hf_mwp.runtime.text_reader import check_fit
    from hf_mwp.solver.batches.mwp_processor import MwpProcessor

    name = str(name)
    folder = check_folder(name, solver=True)
    if folder is not None and read_mapping(folder / CONFIG_NAME).get("model_type") == SOLVER_TYPE:
        check_model_folder(folder)
    options = hub_options(config_fields)
    model_type = load_config(name, **options).model_type
    model_class = solver_class(model_type)
    if model_class is None:
        raise UsageError(f"{name} contains a model of type {model_type!r}, but a solver is needed.")
    with loading(name):
        processor = MwpProcessor.from_pretrained(name, **options)
        model_options = {"dtype": "float32"} | config_fields
        model = model_class.from_pretrained(name, use_safetensors=True, **model_options)
        num_embeddings = model.get_input_embeddings().num_embeddings
        tokenizer = processor.tokenizer.backend_tokenizer
        check_fit(name, processor.vocabulary, model.vocabulary, tokenizer, num_embeddings)
        processor.check_model(model)
    processor.limit_length(count_positions(model.encoder.config))
    return model, processor
