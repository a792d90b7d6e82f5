"""Interface of decoders for [`MwpSolver`]."""

import copy
from abc import abstractmethod
from collections.abc import Sequence
from typing import Any, ClassVar

import torch
from torch import Tensor, nn
from transformers import PreTrainedConfig, PreTrainedModel
from transformers import initialization as init
from transformers.utils import ModelOutput

from hf_mwp.runtime.answer import check_search
from hf_mwp.runtime.output_vocabulary import OutputVocabulary

from .expression_model import ExpressionModel
from .solve_output import SolveOutput


class DecoderPreTrainedModel(PreTrainedModel):
    """Base class of decoders: attention flags for Transformers and the initialisation of linear layers."""

    base_model_prefix = "decoder"
    main_input_name = "encoder_hidden_states"
    accepts_loss_kwargs = False
    # Decoders do not use attention layers of Transformers, so their encoder may use any implementation.
    _supports_sdpa = True
    _supports_flash_attn = True
    _supports_flex_attn = True
    _supports_attention_backend = True

    @torch.no_grad()
    def _init_weights(self, module: nn.Module) -> None:
        if isinstance(module, nn.Linear):
            std = self.config.initializer_range
            bound = module.in_features**-0.5
            for parameter in module.parameters(recurse=False):
                if std is None:
                    init.uniform_(parameter, -bound, bound)
                elif parameter is module.weight:
                    init.normal_(parameter, std=std)
                else:
                    init.zeros_(parameter)

    def extend_embeddings(self, old: nn.Parameter, count: int) -> nn.Parameter:
        """Add `count` random embeddings of constants to `old` `(n, H)`, drawn around their mean (around 0 without)."""
        generator = torch.Generator().manual_seed(0)
        rows = torch.randn(len(old) + count, old.shape[1], generator=generator).to(old)
        if len(old):
            std = old.std() / 2 if old.numel() > 1 else 1.0
            rows = old.mean(0) + std * rows
        embeddings = torch.cat([old, rows[len(old) :]])
        return nn.Parameter(embeddings, requires_grad=old.requires_grad)


class Decoder(ExpressionModel):
    """
    Base class of decoders, which find expressions over the numbers of problems from the hidden states of an encoder,
    such as [`GTSDecoder`] and [`AthenaModel`]. A class that derives from `PreTrainedModel` and `Decoder`, and is
    registered with `AutoModel`, can be the decoder of an [`MwpSolver`]. Its declarations about predictions and inputs
    are in [`~models.expression_model.ExpressionModel`].

    Its `config` has the fields `operators` and `constants` (the output symbols in the order of their ids, which the
    problem's numbers follow), `encoder_hidden_size`, `max_length` (maximum number of symbols) and `dropout`.

    Equal numbers keep their own index: `number_groups[i]` is the index of the first number with the value and kind of
    number `i`. Labels use the first index. A decoder that merges equal numbers must use the first index in its
    expressions too; a decoder that does not merge them may use any index of the group.

    Attributes:
        prediction_fields (`tuple[str, ...]`): Config fields, besides the symbols, that change the predictions for a
            target. Student and teacher must have the same values.
        has_score_margin (`bool`): Whether `generate` has a `score_margin`, see [`Solver.solve`].
    """

    config: PreTrainedConfig
    config_class: ClassVar[type[PreTrainedConfig]]
    prediction_fields: ClassVar[tuple[str, ...]] = ()
    has_score_margin: ClassVar[bool] = False

    @property
    @abstractmethod
    def title(self) -> str:
        """Return the name of the decoder in model cards."""

    @property
    def vocabulary(self) -> OutputVocabulary:
        """Return the output symbols."""
        return OutputVocabulary(tuple(self.config.operators), tuple(self.config.constants))

    @classmethod
    def sizes_for(cls, encoder_config: PreTrainedConfig) -> dict[str, Any]:
        """Return the config fields that depend on the encoder."""
        return dict.fromkeys(("hidden_size", "encoder_hidden_size"), encoder_config.hidden_size)

    @classmethod
    def make_config(
        cls, vocabulary: OutputVocabulary, encoder_config: PreTrainedConfig, **fields: Any
    ) -> PreTrainedConfig:
        """Return the default configuration for an encoder and the symbols of a processor, with overridden `fields`. It
        may add constants at the end, which the processor must adopt."""
        symbols = {"operators": vocabulary.operators, "constants": vocabulary.constants}
        return cls.config_class(**(symbols | cls.sizes_for(encoder_config) | fields))

    def new_config(
        self, encoder_config: PreTrainedConfig | None = None, dropout: float | None = None
    ) -> PreTrainedConfig:
        """Return a copy of the configuration, adapted to a new encoder or with a new dropout if given."""
        config = copy.deepcopy(self.config)
        if encoder_config is not None:
            config.update(self.sizes_for(encoder_config))
        if dropout is not None:
            config.dropout = dropout
        return config

    def added_constants(self, constants: Sequence[str]) -> list[str]:
        """Return the new constants. Raises `ValueError` if `constants` does not begin with the decoder's constants."""
        constants = list(constants)
        existing = list(self.config.constants)
        if constants[: len(existing)] != existing:
            raise ValueError(f"The constants {constants} do not begin with the decoder's constants {existing}.")
        return constants[len(existing) :]

    @abstractmethod
    def set_constants(self, constants: Sequence[str], used: Sequence[str] = ()) -> None:
        """
        Add constants, whose embeddings start around the mean of the existing ones.

        Args:
            constants (`Sequence[str]`): All constants: the existing ones in their order, then the new ones. Raises
                `ValueError` if an existing constant is missing or has moved.
            used (`Sequence[str]`, *optional*): Existing constants that problems use from now on, not only expressions.
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
            batch: Further entries of the collator's batches that the signature lists, such as `labels`.

        Returns:
            `ModelOutput` with `loss`, summed within each problem and averaged over problems, and the outputs listed in
            `prediction.outputs`. A decoder with hidden states to distil accepts `output_hidden_states` and returns
            `hidden_states` too: tensors `(B, items, hidden_size)`, beginning with the input of its layers. Its
            collator then adds `decoder_state_mask` `(B, items)`, which is false at padding.
        """

    @staticmethod
    def positions_or_empty(states: Tensor, number_positions: Tensor | None) -> Tensor:
        """Return `number_positions`, or an empty tensor `(B, 0)` for states `(B, S, H)` without numbers."""
        if number_positions is None:
            return states.new_empty(len(states), 0, dtype=torch.long)
        return number_positions

    def length_limit(self, max_length: int | None, num_beams: int, num_return_sequences: int) -> int:
        """Return the maximum number of symbols in an expression. Raises `ValueError` for impossible counts."""
        length = self.config.max_length if max_length is None else max_length
        if min(num_beams, length) < 1 or not 1 <= num_return_sequences <= num_beams:
            rule = "`num_beams` and `max_length` must be at least 1, `num_return_sequences` at most `num_beams`"
            raise ValueError(f"{rule}, got {num_beams}, {length} and {num_return_sequences}.")
        return length

    def check_score_margin(self, score_margin: float) -> None:
        """Raise `ValueError` for an invalid margin of scores, or a decoder without one."""
        if not self.has_score_margin:
            raise ValueError(f"{type(self).__name__} has no margin of scores. Remove `score_margin`.")
        check_search(score_margin=score_margin)

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
        """Return the most probable expressions; see [`Solver.solve`] for the arguments, and `extra_inputs` above.
        Raises `ValueError` if a count is below 1, or `num_return_sequences` above `num_beams`."""
