"""Interface of the decoders of [`MwpSolver`]."""

from __future__ import annotations

import copy
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

import torch
from torch import Tensor, nn
from transformers import PreTrainedConfig, PreTrainedModel
from transformers import initialization as init
from transformers.utils import ModelOutput

from ..runtime.output_vocabulary import OutputVocabulary
from .prediction_kind import EXPRESSION_POSITIONS, PredictionKind


if TYPE_CHECKING:
    from ..data.batches.mwp_processor import MwpProcessor
    from .solver import SolveOutput


class DecoderPreTrainedModel(PreTrainedModel):
    """Base class of the decoders: attention flags for Transformers, and the initial weights of linear layers."""

    base_model_prefix = "decoder"
    main_input_name = "encoder_hidden_states"
    accepts_loss_kwargs = False
    # Decoders have no layer of Transformers' attention, so that of their encoder may be of any kind.
    _supports_sdpa = True
    _supports_flash_attn = True
    _supports_flex_attn = True
    _supports_attention_backend = True

    @torch.no_grad()
    def _init_weights(self, module: nn.Module) -> None:
        if isinstance(module, nn.Linear):
            std, bound = self.config.initializer_range, module.in_features**-0.5
            for parameter in module.parameters(recurse=False):
                if std is None:
                    init.uniform_(parameter, -bound, bound)
                elif parameter is module.weight:
                    init.normal_(parameter, std=std)
                else:
                    init.zeros_(parameter)

    def with_rows(self, old: nn.Parameter, count: int) -> nn.Parameter:
        """Return embeddings of constants `(n, H)` with `count` new ones about their mean, or as in a new decoder."""
        rows = torch.randn(len(old) + count, old.shape[1], generator=torch.Generator().manual_seed(0)).to(old)
        if len(old):
            rows = old.mean(0) + (old.std() / 2 if old.numel() > 1 else 1.0) * rows
        return nn.Parameter(torch.cat([old, rows[len(old) :]]), requires_grad=old.requires_grad)


class Decoder(ABC):
    """
    A model that finds expressions over the numbers of problems, from the hidden states of an encoder; [`GTSDecoder`]
    and [`AthenaModel`] are two. A class that derives from `PreTrainedModel` and from this one, and is registered with
    `AutoModel`, is a decoder of [`MwpSolver`], with all that solvers can be used for.

    Its `config` has the fields `operators` and `constants` (the output symbols, in the order of their ids; the
    problem's numbers follow), `encoder_hidden_size`, `max_length` (most symbols of an expression) and `dropout`.

    Equal numbers keep their places: `number_groups[i]` is the index of the first number with the value and kind of
    number `i`. Labels name the first one. A decoder that merges equal numbers uses that index in its expressions too,
    so a merged number is the first of its group; one that does not may name any of them.

    Attributes:
        prediction ([`PredictionKind`]): Kind of prediction of its `forward`.
        prediction_fields (`tuple[str, ...]`): Fields of its configuration, besides the symbols, that decide what is
            predicted for a target: student and teacher must have the same.
        extra_columns (`tuple[str, ...]`): Columns that [`MwpProcessor`] adds to encoded problems for its collator:
            `"question_positions"` (`list[int]`, the tokens of the question in order; the last one has its last
            character) and `"number_values"` (`list[str]`, exact values that `Fraction` reads).
        extra_inputs (`tuple[str, ...]`): Further entries of a batch that `generate` takes: `"number_groups"`
            `(B, N)`, `"question_positions"` `(B, Q)`, -1 where padded.
        target_error (`Callable`, *optional*): A method that returns why an encoded row's target cannot be learned, so
            that training leaves the row out, or `None`. Not set where every target can be learned.
        runs_in_numpy (`bool`): Whether [`runtime`] can search with its weights, so that a solver can be exported.
    """

    config: PreTrainedConfig
    config_class: ClassVar[type[PreTrainedConfig]]
    prediction: ClassVar[PredictionKind] = EXPRESSION_POSITIONS
    prediction_fields: ClassVar[tuple[str, ...]] = ()
    extra_columns: ClassVar[tuple[str, ...]] = ()
    extra_inputs: ClassVar[tuple[str, ...]] = ()
    target_error: Callable[[Mapping[str, Any]], str | None] | None = None
    runs_in_numpy: ClassVar[bool] = False

    @property
    @abstractmethod
    def title(self) -> str:
        """Return the card's name of the decoder."""

    @property
    def vocabulary(self) -> OutputVocabulary:
        """Return the symbols of its expressions."""
        return OutputVocabulary(tuple(self.config.operators), tuple(self.config.constants))

    @classmethod
    def sizes_for(cls, encoder_config: PreTrainedConfig) -> dict[str, Any]:
        """Return the fields of its configuration that depend on the encoder."""
        return dict.fromkeys(("hidden_size", "encoder_hidden_size"), encoder_config.hidden_size)

    @classmethod
    def make_config(
        cls, vocabulary: OutputVocabulary, encoder_config: PreTrainedConfig, **fields: Any
    ) -> PreTrainedConfig:
        """
        Make the default configuration for an encoder.

        Args:
            vocabulary ([`OutputVocabulary`]): Symbols of a processor. The configuration may have further constants at
                the end, which the processor must take over.
            encoder_config (`PreTrainedConfig`): Configuration of the encoder.
            fields: Fields of the configuration to change.
        """
        symbols = {"operators": vocabulary.operators, "constants": vocabulary.constants}
        return cls.config_class(**(symbols | cls.sizes_for(encoder_config) | fields))

    def new_config(
        self, encoder_config: PreTrainedConfig | None = None, dropout: float | None = None
    ) -> PreTrainedConfig:
        """Return a copy of its configuration, for another encoder or with another dropout where these are given."""
        config = copy.deepcopy(self.config)
        for name, value in ({} if encoder_config is None else self.sizes_for(encoder_config)).items():
            setattr(config, name, value)
        if dropout is not None:
            config.dropout = dropout
        return config

    @abstractmethod
    def make_collator(self, processor: MwpProcessor) -> Callable[[list[dict[str, Any]]], dict[str, Any]]:
        """
        Return the collator of rows that the processor has encoded. Entries of its batches are passed to `forward`
        where that names them; batches with targets have `labels`.
        """

    def added_constants(self, constants: Sequence[str]) -> list[str]:
        """Return the constants that the decoder lacks; `ValueError` if it does not have the first ones, in order."""
        known = list(self.config.constants)
        if list(constants)[: len(known)] != known:
            raise ValueError(f"the constants {list(constants)} do not begin with those that the decoder has: {known}")
        return list(constants)[len(known) :]

    @abstractmethod
    def set_constants(self, constants: Sequence[str]) -> None:
        """
        Give the decoder further constants, which start about the mean of the known ones.

        Args:
            constants (`Sequence[str]`): All constants, those that it has first and in their order.

        Raises:
            `ValueError`: a constant that it has is left out or has moved.
        """

    @abstractmethod
    def forward(
        self,
        encoder_hidden_states: Tensor,
        attention_mask: Tensor | None = None,
        number_positions: Tensor | None = None,
        **batch: Any,
    ) -> ModelOutput:
        """
        Score the targets of a batch.

        Args:
            encoder_hidden_states (`torch.FloatTensor` of shape `(B, S, encoder_hidden_size)`): Last hidden states.
            attention_mask (`torch.Tensor` of shape `(B, S)`, *optional*): 0 at padding.
            number_positions (`torch.LongTensor` of shape `(B, N)`, *optional*): Token of each number, -1 for none.
            batch: Further entries of its collator's batches, named in the signature; `labels` is one of them.

        Returns:
            `ModelOutput` with `loss`, a sum within each problem, averaged over the problems, and the outputs that its
            kind of prediction names (`prediction.outputs`). A decoder that has states to distil takes
            `output_hidden_states` and returns them as `hidden_states` too: tensors `(B, items, hidden_size)`, what
            enters its layers first. Its collator then adds `decoder_state_mask` `(B, items)`, true at the items of
            each problem.
        """

    @staticmethod
    def positions_in(states: Tensor, number_positions: Tensor | None) -> Tensor:
        """Return the positions of numbers in a batch of states `(B, S, H)`, `(B, 0)` where none are given."""
        return states.new_empty(len(states), 0, dtype=torch.long) if number_positions is None else number_positions

    def length_limit(self, max_length: int | None, num_beams: int, num_return_sequences: int) -> int:
        """Return the most symbols of an expression; `ValueError` for counts with which nothing can be searched."""
        length = self.config.max_length if max_length is None else max_length
        if min(num_beams, length) < 1 or not 1 <= num_return_sequences <= num_beams:
            raise ValueError(
                f"`num_beams` ({num_beams}) and `max_length` ({length}) must be at least 1, and "
                f"`num_return_sequences` ({num_return_sequences}) from 1 to `num_beams`."
            )
        return length

    @abstractmethod
    def generate(
        self,
        encoder_hidden_states: Tensor,
        attention_mask: Tensor | None = None,
        number_positions: Tensor | None = None,
        num_beams: int = 1,
        max_length: int | None = None,
        num_return_sequences: int = 1,
        **extra_inputs: Tensor,
    ) -> SolveOutput:
        """
        Find the likeliest expressions; see [`Solver.solve`], and `extra_inputs` above. Raises `ValueError` for a count
        below 1, or more answers than beams.
        """
