"""Interface of solvers of math word problems."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

import torch
from torch import Tensor, nn
from transformers import PreTrainedModel
from transformers.utils import ModelOutput

from ..data.batches.mwp_collator import MwpCollator
from ..data.batches.mwp_processor import MwpProcessor
from ..runtime.output_vocabulary import OutputVocabulary
from .prediction_kind import EXPRESSION_POSITIONS, PredictionKind


@dataclass
class SolveOutput(ModelOutput):
    """Decoded expressions, the best first.

    Args:
        sequences (`torch.LongTensor` of shape `(batch, num_return_sequences, longest)`):
            Prefix ids, -100 after the end.
        scores (`torch.FloatTensor` of shape `(batch, num_return_sequences)`):
            Sum of the log probabilities of the symbols; minus infinity where there is no expression.
        finished (`torch.BoolTensor` of shape `(batch, num_return_sequences)`):
            Whether the row is a complete expression. Rows that are not are empty: a problem without numbers and
            without constants has no expression.
        capped (`torch.BoolTensor` of shape `(batch,)`, *optional*):
            Whether a limit on what is tried cut the search short, of decoders that have such limits.
    """

    sequences: torch.LongTensor | None = None
    scores: torch.FloatTensor | None = None
    finished: torch.BoolTensor | None = None
    capped: torch.BoolTensor | None = None

    @classmethod
    def of(
        cls, found: Sequence[Sequence[tuple[Sequence[int], float]]], count: int, device: torch.device | str
    ) -> Self:
        """Make the output for `num_return_sequences=count` of the prefix ids and scores found for each problem."""
        longest = max((len(ids) for answers in found for ids, _ in answers), default=1)
        sequences = torch.full((len(found), count, longest), -100)
        scores = torch.full((len(found), count), -torch.inf)
        for problem, answers in enumerate(found):
            for place, (ids, score) in enumerate(answers):
                sequences[problem, place, : len(ids)] = torch.tensor(ids)
                scores[problem, place] = score
        return cls(sequences.to(device), scores.to(device), scores.isfinite().to(device))


class Solver(ABC):
    """
    A model that reads problems and finds expressions over their numbers; [`MwpSolver`] is one.

    A class that derives from `PreTrainedModel` and from this one is trained by [`SolverTrainer`], is student and
    (cached) teacher of [`DistillationTrainer`], and runs in the pipeline `math-word-problem`. Its `forward` takes the
    batches of its collator and returns an output with names: with labels

    - `loss`, a sum within each problem, averaged over the problems;
    - the outputs of its kind of prediction, which distillation compares and a teacher cache keeps. By default these
      are `logits` `(problems, positions, symbols + numbers)`, at the places of `labels`: scores of the symbols of its
      vocabulary, then of the problem's numbers, the smallest finite number for those that a problem lacks;

    and on demand `hidden_states` and `attentions`, those of its encoder.

    Attributes:
        encoder (`PreTrainedModel`): Reads the text.
        prediction ([`PredictionKind`]), extra_columns, extra_inputs (`tuple[str, ...]`), target_error (`Callable`):
            As in [`~models.decoder.Decoder`]; `extra_inputs` are arguments of `solve`.
        prediction_rules (`Mapping[str, Any]`): Rules by name that decide what is predicted for a target.
    """

    encoder: PreTrainedModel
    prediction: PredictionKind = EXPRESSION_POSITIONS
    prediction_rules: Mapping[str, Any] = {}
    extra_columns: tuple[str, ...] = ()
    extra_inputs: tuple[str, ...] = ()
    target_error: Callable[[Mapping[str, Any]], str | None] | None = None

    @property
    @abstractmethod
    def vocabulary(self) -> OutputVocabulary:
        """The symbols of its expressions; the problem's numbers have the ids that follow."""

    @property
    @abstractmethod
    def decoding_modules(self) -> list[nn.Module]:
        """
        Return the modules that start from random weights and have their own learning rate (`decoder_learning_rate`).
        """

    @property
    def decoder_title(self) -> str:
        """Return the card's name of the decoder."""
        return "decoder"

    def make_collator(self, processor: MwpProcessor) -> Callable[[list[dict[str, Any]]], dict[str, Any]]:
        """From rows that the processor has encoded to batches; any layout of the labels that it needs is added."""
        return MwpCollator(processor, trees=False)

    @abstractmethod
    def solve(
        self,
        input_ids: Tensor,
        attention_mask: Tensor | None = None,
        number_positions: Tensor | None = None,
        *,
        num_beams: int = 1,
        max_length: int | None = None,
        num_return_sequences: int = 1,
    ) -> SolveOutput:
        """
        Finds the likeliest expressions of a batch.

        Args:
            input_ids (`torch.LongTensor` of shape `(B, S)`): Tokens of the masked text.
            attention_mask (`torch.Tensor` of shape `(B, S)`, *optional*): 0 at padding.
            number_positions (`torch.LongTensor` of shape `(B, N)`, *optional*): Token of each number, -1 for none.
            num_beams (`int`, *optional*, defaults to 1): 1 is greedy search.
            max_length (`int`, *optional*): Most symbols of an expression; its own limit by default.
            num_return_sequences (`int`, *optional*, defaults to 1): Expressions of a problem, best first.
        """
