"""Solver of math word problems: an encoder and a decoder."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from inspect import signature
from operator import attrgetter
from os import PathLike
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from torch import Tensor, nn
from transformers import CONFIG_MAPPING, AutoModel, PreTrainedConfig, PreTrainedModel
from transformers.utils import ModelOutput

from hf_mwp.compress.models.architecture import count_positions
from hf_mwp.compress.models.bottlenecks import Bottleneck, Bottlenecks, bottleneck_hooks, detach_bottlenecks
from hf_mwp.runtime.solver import EXPORT_RECORD
from hf_mwp.runtime.solver_folder import CONFIG_NAME, check_model_folder, weights_fault
from hf_mwp.runtime.weights import FILE_NAME, INDEX_NAME, weight_files
from hf_mwp.solver.batches.mwp_processor import MwpProcessor
from hf_mwp.utils.checked_types import checked
from hf_mwp.utils.downloads import find_beside, hub_options, missing_folder, note_download
from hf_mwp.utils.files import writing_weights
from hf_mwp.utils.provenance import inherit_training_texts, training_texts_of, write_training_texts
from hf_mwp.utils.usage_error import UsageError, not_a_solver

from ..decoder import Decoder
from ..gts.modeling_gts import GTSDecoder
from ..solve_output import SolveOutput
from ..solver import Solver
from .configuration_mwp_solver import MwpSolverConfig, SolverFolderError


@dataclass
class MwpSolverOutput(ModelOutput):
    """Output of [`MwpSolver`]."""

    # Loss of the decoder, summed within each problem and averaged over problems, and its predictions.
    loss: torch.FloatTensor | None = None
    logits: torch.FloatTensor | None = None
    answer_logits: torch.FloatTensor | None = None
    # The encoder's states `(batch, tokens, width)`, embedding output first; the decoder's, if any; attention maps.
    hidden_states: tuple[torch.FloatTensor, ...] | None = None
    decoder_hidden_states: tuple[torch.FloatTensor, ...] | None = None
    attentions: tuple[torch.FloatTensor, ...] | None = None
    last_hidden_state: torch.FloatTensor | None = None  # (batch, tokens, width): input of the decoder
    # States `(batch, tokens, bottleneck_size)` within the bottleneck networks, by `config.bottleneck_layers`.
    bottleneck_states: tuple[torch.FloatTensor, ...] | None = None


class MwpSolver(PreTrainedModel, Solver):
    """
    Solver of math word problems, which maps text with masked numbers to an expression over these numbers.

    Args:
        config ([`MwpSolverConfig`]): Encoder and decoder.
        encoder (`PreTrainedModel`, *optional*): An encoder without bottleneck networks, to use instead of a new one.
        decoder ([`~models.decoder.Decoder`], *optional*): A decoder to use instead of a new one.
    """

    config_class = MwpSolverConfig
    base_model_prefix = "solver"
    main_input_name = "input_ids"
    accepts_loss_kwargs = False
    supports_gradient_checkpointing = True
    _supports_sdpa = True
    _supports_flash_attn = True

    @checked
    def __init__(
        self, config: MwpSolverConfig, encoder: PreTrainedModel | None = None, decoder: Decoder | None = None
    ) -> None:
        super().__init__(config)
        if encoder is None:
            encoder = AutoModel.from_config(config.encoder_config, trust_remote_code=False)
        elif any(bottleneck_hooks(encoder)):
            name = type(encoder).__name__
            raise ValueError(f"This `{name}` has bottleneck networks. Call `detach_bottlenecks(encoder)` first.")
        self.encoder = encoder
        if getattr(encoder, "pooler", None) is not None:
            encoder.pooler = None
        self.decoder = decoder or AutoModel.from_config(config.decoder_config, trust_remote_code=False)
        # Batches may contain further entries for the trainer, such as teacher outputs.
        self._decoder_inputs = set(signature(self.decoder.forward).parameters)
        config.encoder_config = self.encoder.config
        config.decoder_config = self.decoder.config
        self.bottlenecks = None
        if config.bottleneck_layers:
            self.bottlenecks = Bottlenecks(self.encoder, config.bottleneck_layers, config.bottleneck_size)
        self.post_init()

    @torch.no_grad()
    def _init_weights(self, module: nn.Module) -> None:
        """Initialise bottleneck networks only. Encoder and decoder initialise their own modules."""
        if isinstance(module, Bottleneck):
            module.init_weights()

    @classmethod
    def from_pretrained(cls, pretrained_model_name_or_path, *model_args, **kwargs):
        """
        Load a solver as `PreTrainedModel` does, also from `None` with `config` and `state_dict` (`ValueError` if one
        is missing). Raises `OSError` if the folder does not exist, and [`SolverFolderError`] if the model is not a
        solver, a file is damaged or missing, or weights are missing, unexpected, or have a different shape (unless
        `ignore_mismatched_sizes=True`). Weights of bottleneck networks may differ according to the given config.
        """
        source = pretrained_model_name_or_path
        with_info = kwargs.pop("output_loading_info", False)
        any_size = kwargs.pop("ignore_mismatched_sizes", False)
        hub = hub_options(kwargs)
        if source is None:
            if not isinstance(kwargs.get("config"), PreTrainedConfig) or kwargs.get("state_dict") is None:
                raise ValueError(
                    "Without a folder or Hub id, pass both `config` (an `MwpSolverConfig`) and `state_dict`."
                )
            model, info = super().from_pretrained(
                None, *model_args, ignore_mismatched_sizes=True, output_loading_info=True, **kwargs
            )
            _check_weights(None, "state_dict", model.config, info, hub, any_size)
            return (model, info) if with_info else model
        fault = missing_folder(source)
        if fault:
            raise OSError(fault)
        folder = Path(source, hub.get("subfolder", ""))
        if (folder / CONFIG_NAME).is_file():
            try:
                check_model_folder(folder, any_size)
            except UsageError as error:
                raise SolverFolderError(str(error)) from error
        if not isinstance(kwargs.get("config"), PreTrainedConfig):
            config_fields, _ = PreTrainedConfig.get_config_dict(kwargs.get("config") or source, **hub)
            model_type = config_fields.get("model_type")
            if model_type != MwpSolverConfig.model_type:
                raise SolverFolderError(not_a_solver(source, model_type))
        file = FILE_NAME
        if (folder / INDEX_NAME).exists() and not (folder / FILE_NAME).exists():
            file = INDEX_NAME
        try:
            model, info = super().from_pretrained(
                source, *model_args, ignore_mismatched_sizes=True, output_loading_info=True, **kwargs
            )
        # Damaged files raise OSError, ValueError, TypeError, KeyError, ...
        except Exception as error:
            damage = _damage(folder, file) if folder.is_dir() else None
            if damage:
                raise SolverFolderError(f"{source} {damage}. Download or train it again.") from error
            raise
        _check_weights(source, file, model.config, info, hub, any_size)
        note_download(model, hub)
        return (model, info) if with_info else model

    @classmethod
    def from_encoder_decoder_pretrained(
        cls,
        encoder: str | PathLike | PreTrainedModel,
        processor: MwpProcessor,
        decoder: type[Decoder] | PreTrainedConfig | Decoder = GTSDecoder,
        decoder_kwargs: dict | None = None,
        bottleneck_layers: Sequence[int] = (),
        bottleneck_size: int | None = None,
        **encoder_kwargs,
    ) -> MwpSolver:
        """
        Build a solver from a pretrained encoder and a new or given decoder.

        Args:
            encoder (`str`, path or `PreTrainedModel`):
                Hub id or folder (with safetensors) of a BERT- or RoBERTa-like encoder, or the encoder itself.
            processor ([`MwpProcessor`]):
                Processor with the output symbols. The encoder's embeddings are resized to its tokenizer; the rows of
                `[NUM0]`, `[NUM1]`, ... start as the row of `[NUM]` with a little noise. Encode problems after this
                call: it lowers `max_length` to the encoder's positions and adds the decoder's constants and columns.
            decoder (class, configuration or model, *optional*, defaults to [`GTSDecoder`]):
                A decoder class ([`GTSDecoder`], [`AthenaModel`]), for a new decoder with the encoder's width and the
                processor's symbols; the configuration of a new decoder; or a decoder.
            decoder_kwargs (`dict`, *optional*): Fields of the new decoder's configuration, such as `dropout`.
            bottleneck_layers (`Sequence[int]`, *optional*), bottleneck_size (`int`, *optional*):
                Layers of bottleneck networks (from 1), and their width; see [`MwpSolverConfig`].
            encoder_kwargs:
                Passed to `AutoModel.from_pretrained`, such as `num_hidden_layers=3` for the first three layers.

        Raises:
            `OSError`: the folder or Hub id does not exist, or has no safetensors weights.
            `ValueError`: decoder and processor have different symbols, or `AutoModel` would not load the encoder's
                class, so that the saved solver could not be loaded.
        """
        if not isinstance(encoder, PreTrainedModel):
            encoder_kwargs.setdefault("dtype", torch.float32)
            trust_remote_code = encoder_kwargs.pop("trust_remote_code", False)
            encoder = AutoModel.from_pretrained(
                encoder, use_safetensors=True, trust_remote_code=trust_remote_code, **encoder_kwargs
            )
            note_download(encoder, hub_options(encoder_kwargs))
        _check_reloads(encoder)
        processor.resize_embeddings(encoder)
        processor.limit_length(count_positions(encoder.config))
        if isinstance(decoder, type):
            decoder = decoder.make_config(processor.vocabulary, encoder.config, **(decoder_kwargs or {}))
            processor.vocabulary = processor.vocabulary.with_constants(decoder.constants, written=True)
        if isinstance(decoder, PreTrainedConfig):
            # Use full precision, even if the config comes from a model in half precision.
            decoder = AutoModel.from_config(decoder, dtype=torch.get_default_dtype(), trust_remote_code=False)
        processor.check_symbols(decoder.config.operators, decoder.config.constants)
        processor.add_columns(decoder.extra_columns)
        config = MwpSolverConfig(
            encoder_config=encoder.config,
            decoder_config=decoder.config,
            bottleneck_layers=list(bottleneck_layers),
            bottleneck_size=bottleneck_size,
        )
        solver = cls(config, encoder=encoder, decoder=decoder)
        inherit_training_texts(solver, encoder)
        return solver

    def convert_encoder(self, convert: Callable[[PreTrainedModel], PreTrainedModel]) -> MwpSolver:
        """Return a solver on the encoder that `convert` makes of this solver's encoder, with equal width and layers.
        The decoder is shared, and this solver's encoder loses its bottleneck networks."""
        # The new solver attaches the bottleneck networks to the new encoder by hooks itself.
        detach_bottlenecks(self.encoder)
        encoder = convert(self.encoder)
        config = copy.deepcopy(self.config)
        config.encoder_config = encoder.config
        solver = type(self)(config, encoder=encoder, decoder=self.decoder)
        if self.bottlenecks is not None:
            solver.bottlenecks.load_state_dict(self.bottlenecks.state_dict())
        solver.training_texts = training_texts_of(self)
        inherit_training_texts(solver, self)
        return solver.to(self.device, self.dtype).train(self.training)

    def save_pretrained(self, save_directory: str | PathLike, is_main_process: bool = True, **kwargs) -> None:
        """Save the model as `PreTrainedModel` does, with hashes of its training texts; see [`data.TrainingTexts`]."""
        if is_main_process and not Path(save_directory).is_file():
            # Written first, because pushing to the Hub uploads the folder when the weights are written.
            write_training_texts(self, save_directory)
        with writing_weights(save_directory):
            super().save_pretrained(save_directory, is_main_process=is_main_process, **kwargs)

    vocabulary = property(attrgetter("decoder.vocabulary"))
    prediction = property(attrgetter("decoder.prediction"))
    extra_columns = property(attrgetter("decoder.extra_columns"))
    extra_inputs = property(attrgetter("decoder.extra_inputs"))
    target_error = property(attrgetter("decoder.target_error"))
    runs_in_numpy = property(attrgetter("decoder.runs_in_numpy"))
    decoder_title = property(attrgetter("decoder.title"))

    @property
    def prediction_rules(self) -> dict[str, Any]:
        return {name: getattr(self.decoder.config, name) for name in self.decoder.prediction_fields}

    @property
    def decoding_modules(self) -> list[nn.Module]:
        return [self.decoder]

    def make_collator(self, processor: MwpProcessor) -> Callable[[list[dict[str, Any]]], dict[str, Any]]:
        return self.decoder.make_collator(processor)

    def get_input_embeddings(self) -> nn.Module:
        return self.encoder.get_input_embeddings()

    def set_input_embeddings(self, value: nn.Module) -> None:
        self.encoder.set_input_embeddings(value)

    def encode(self, input_ids, attention_mask=None, token_type_ids=None, **kwargs):
        """Run the encoder. Token types are passed only if given."""
        if token_type_ids is not None:
            kwargs["token_type_ids"] = token_type_ids
        return self.encoder(input_ids=input_ids, attention_mask=attention_mask, return_dict=True, **kwargs)

    def forward(
        self,
        input_ids: Tensor,
        attention_mask: Tensor | None = None,
        token_type_ids: Tensor | None = None,
        number_positions: Tensor | None = None,
        labels: Tensor | None = None,
        output_hidden_states: bool | None = None,
        output_attentions: bool | None = None,
        return_dict: bool | None = None,
        **batch: Any,
    ) -> MwpSolverOutput | tuple:
        """
        Encode problems and, with `labels`, score the targets.

        Args:
            input_ids, attention_mask, number_positions: See [`~MwpSolver.solve`].
            token_type_ids (`torch.LongTensor` of shape `(B, S)`, *optional*): Segment of each token.
            labels (`torch.LongTensor` of shape `(B, T)`, *optional*):
                Prefix ids of the targets, -100 where padded. Without `labels`, only the encoder is run.
            output_hidden_states (`bool`, *optional*): Whether to return the hidden states of encoder and decoder.
            output_attentions (`bool`, *optional*): Whether to return attention maps (eager attention only).
            return_dict (`bool`, *optional*): Whether to return a `ModelOutput` (default) instead of a tuple.
            batch: Further batch entries. Arguments of the decoder's `forward` are passed on, others are ignored.
        """
        options = {}
        if output_hidden_states is not None:
            options["output_hidden_states"] = output_hidden_states
        if output_attentions is not None:
            options["output_attentions"] = output_attentions
        recording = nullcontext()
        if output_hidden_states and self.bottlenecks is not None:
            recording = self.bottlenecks.recorded()
        with recording as bottleneck_states:
            encoded = self.encode(input_ids, attention_mask, token_type_ids, **options)
        states = encoded.last_hidden_state
        predictions = {}
        if labels is not None:
            batch |= {"labels": labels, "output_hidden_states": output_hidden_states}
            inputs = {name: value for name, value in batch.items() if name in self._decoder_inputs}
            decoded = self.decoder(states, attention_mask, number_positions, **inputs)
            predictions = {name: decoded[name] for name in ("loss", *self.prediction.outputs)}
            predictions["decoder_hidden_states"] = decoded.get("hidden_states")
        output = MwpSolverOutput(
            **predictions,
            hidden_states=encoded.get("hidden_states"),
            attentions=encoded.get("attentions"),
            last_hidden_state=states,
        )
        if bottleneck_states is not None:
            output.bottleneck_states = tuple(bottleneck_states)
        return output.to_tuple() if return_dict is False else output

    @torch.inference_mode()
    def solve(
        self,
        input_ids: Tensor,
        attention_mask: Tensor | None = None,
        number_positions: Tensor | None = None,
        token_type_ids: Tensor | None = None,
        num_beams: int = 1,
        max_length: int | None = None,
        num_return_sequences: int = 1,
        score_margin: float | None = None,
        **inputs: Tensor,
    ) -> SolveOutput:
        """Return the most probable expressions; see [`Solver`]. `token_type_ids` `(B, S)` are the tokens' segments.
        Further batch entries that the decoder does not use are ignored."""
        states = self.encode(input_ids, attention_mask, token_type_ids).last_hidden_state
        extra = {name: inputs[name] for name in self.extra_inputs if name in inputs}
        if score_margin is not None:
            self.decoder.check_score_margin(score_margin)
            extra["score_margin"] = score_margin
        return self.decoder.generate(
            states, attention_mask, number_positions, num_beams, max_length, num_return_sequences, **extra
        )


def _check_weights(
    source: str | PathLike | None, file: str, config: MwpSolverConfig, info: Mapping, hub: Mapping, any_size: bool
) -> None:
    """Raise `SolverFolderError` for missing, unexpected or (unless `any_size`) mismatched weights in the loading
    `info`."""
    missing = set(info["missing_keys"])
    unexpected = set(info["unexpected_keys"])
    mismatched = [] if any_size else list(info["mismatched_keys"])
    if source is not None and any(name.startswith("bottlenecks.") for name in missing | unexpected):
        # The caller's config may add bottleneck networks, which are new, or leave some out.
        saved_fields, _ = PreTrainedConfig.get_config_dict(source, **hub)
        saved_layers = saved_fields.get("bottleneck_layers") or ()
        changed = tuple(f"bottlenecks.{layer}." for layer in {*saved_layers} ^ {*config.bottleneck_layers})
        missing = {name for name in missing if not name.startswith(changed)}
        unexpected = {name for name in unexpected if not name.startswith(changed)}
    if source is not None and (missing or unexpected) and find_beside(source, EXPORT_RECORD, **hub):
        ways = "Load it with `hf_mwp.runtime.load_solver` or `hf-mwp solve --runtime numpy`."
        raise SolverFolderError(f"{source} was exported for the runtime without PyTorch. {ways}")
    fault = weights_fault(file, sorted(missing), sorted(unexpected), mismatched)
    if fault and source is None:
        raise SolverFolderError(f"`from_pretrained(None)`: {fault}. Pass the weights of a solver with this `config`.")
    if fault:
        raise SolverFolderError(f"{source}: {fault}. Download or train it again.")


def _damage(folder: Path, file: str) -> str | None:
    """Return the fault of the weight files in a local folder, or `None`."""
    try:
        files = [file]
        if file == INDEX_NAME:
            files = weight_files(folder)
        for file in files:
            with safe_open(folder / file, "pt"):
                pass
    except (SafetensorError, OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        return f"has a damaged or missing file ({file}: {type(error).__name__}: {error})"
    return None


def _check_reloads(encoder: PreTrainedModel) -> None:
    """Raise `ValueError` if `AutoModel` creates a different class, or none, from an encoder's configuration."""
    model_type = encoder.config.model_type
    name = type(encoder).__name__
    try:
        classes = AutoModel._model_mapping[CONFIG_MAPPING[model_type]]
    except KeyError:
        classes = ()
    if not isinstance(classes, tuple):
        classes = (classes,)
    names = [loaded.__name__ for loaded in classes]
    # Models loaded with `trust_remote_code` have their own copies of registered classes, with the same names.
    if not isinstance(encoder, classes) and name not in names:
        raise ValueError(
            f"A saved solver could not load its {name}, because AutoModel creates {' or '.join(names) or 'no model'} "
            f"for the type {model_type!r}. Pass such a model, or register its classes with AutoConfig and AutoModel."
        )
