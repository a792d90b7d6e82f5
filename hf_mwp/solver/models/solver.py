"""Interface of solvers of math word problems."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any, Self

import torch
from torch import Tensor, nn
from transformers import PreTrainedModel
from transformers.utils import ModelOutput

from hf_mwp.compress.models.prediction_kind import EXPRESSION_POSITIONS, PredictionKind
from hf_mwp.runtime.output_vocabulary import OutputVocabulary
from hf_mwp.solver.batches.mwp_collator import MwpCollator
from hf_mwp.solver.batches.mwp_processor import MwpProcessor

from .solver_kind import SOLVER, SolverKind


@dataclass
class SolveOutput(ModelOutput):
    """
    Decoded expressions, best first.

    Args:
        sequences (`torch.LongTensor` of shape `(batch, num_return_sequences, longest)`): Prefix ids, then -100.
        scores (`torch.FloatTensor` of shape `(batch, num_return_sequences)`):
            Log probability: the sum over the symbols ([`GTSDecoder`]), or the log softmax over the pool
            ([`AthenaModel`]); minus infinity where there is no expression.
        finished (`torch.BoolTensor` of shape `(batch, num_return_sequences)`):
            Whether the row is an expression. Other rows are empty: without numbers and constants, there is none.
        capped (`torch.BoolTensor` of shape `(batch,)`, *optional*):
            Whether a limit on the number of candidates cut the search short. Only decoders with such limits set it.
        finite (`torch.BoolTensor` of shape `(batch,)`, *optional*):
            Whether no score was NaN or infinite, as weights may be. Rows of a problem with such scores are empty.
    """

    sequences: torch.LongTensor | None = None
    scores: torch.FloatTensor | None = None
    finished: torch.BoolTensor | None = None
    capped: torch.BoolTensor | None = None
    finite: torch.BoolTensor | None = None

    @classmethod
    def of(
        cls, found: Sequence[Sequence[tuple[Sequence[int], float]]], count: int, device: torch.device | str
    ) -> Self:
        """Return the output for `count` expressions per problem, from the prefix ids and scores of each problem."""
        longest = max((len(ids) for ids, _ in chain.from_iterable(found)), default=1)
        sequences = []
        scores = []
        for answers in found:
            num_empty = count - len(answers)
            rows = [[*ids, *[-100] * (longest - len(ids))] for ids, _ in answers]
            sequences.append(rows + [[-100] * longest] * num_empty)
            scores.append([score for _, score in answers] + [-torch.inf] * num_empty)
        scores = torch.tensor(scores)
        return cls(torch.tensor(sequences).to(device), scores.to(device), scores.isfinite().to(device))


class Solver(ABC):
    """
    Base class of models that read problems and find expressions over their numbers, such as [`MwpSolver`].

    A class that derives from `PreTrainedModel` and `Solver` can be trained by [`SolverTrainer`], used as student or
    (cached) teacher of a [`DistillationTrainer`], and runs in the pipeline `math-word-problem`. Its `forward`
    accepts the batches of its collator and returns a `ModelOutput`. With labels, the output contains:

    - `loss`, summed within each problem and averaged over problems;
    - the outputs of its kind of prediction, which distillation compares and a teacher cache stores. The default is
      `logits` `(problems, positions, symbols + numbers)` at the positions of `labels`: scores of the vocabulary's
      symbols, then of the problem's numbers. Numbers that a problem does not have get the smallest finite number;
    - on request, `hidden_states` and `attentions` of the encoder.

    Attributes:
        encoder (`PreTrainedModel`): Encoder of the text.
        prediction ([`PredictionKind`]), extra_columns, extra_inputs (`tuple[str, ...]`), target_error (`Callable`):
            See [`~models.decoder.Decoder`]; `extra_inputs` are arguments of `solve`.
        runs_in_numpy (`bool`): Whether [`runtime`] can solve with its weights, so that it can be exported.
        prediction_rules (`Mapping[str, Any]`): Settings by name that change the predictions for a target.
    """

    encoder: PreTrainedModel
    prediction: PredictionKind = EXPRESSION_POSITIONS
    prediction_rules: Mapping[str, Any] = {}
    extra_columns: tuple[str, ...] = ()
    extra_inputs: tuple[str, ...] = ()
    target_error: Callable[[Mapping[str, Any]], str | None] | None = None
    runs_in_numpy: bool = False

    @property
    def kind(self) -> SolverKind:
        """Return the kind of model, with the predictions of this solver."""
        if self.prediction is SOLVER.prediction:
            return SOLVER
        return replace(SOLVER, prediction=self.prediction)

    @property
    @abstractmethod
    def vocabulary(self) -> OutputVocabulary:
        """Return the output symbols. The problem's numbers have the ids that follow."""

    @property
    @abstractmethod
    def decoding_modules(self) -> list[nn.Module]:
        """Return the randomly initialised modules, which `decoder_learning_rate` applies to."""

    @property
    def decoder_title(self) -> str:
        """Return the name of the decoder in model cards."""
        return "decoder"

    def make_collator(self, processor: MwpProcessor) -> Callable[[list[dict[str, Any]]], dict[str, Any]]:
        """Return the collator for rows encoded by the processor. It adds label layouts that the model needs."""
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
        Return the most probable expressions of a batch.

        Args:
            input_ids (`torch.LongTensor` of shape `(B, S)`): Tokens of the masked text.
            attention_mask (`torch.Tensor` of shape `(B, S)`, *optional*): 0 at padding.
            number_positions (`torch.LongTensor` of shape `(B, N)`, *optional*): Token of each number, -1 for none.
            num_beams (`int`, *optional*, defaults to 1): Number of beams; 1 is greedy search.
            max_length (`int`, *optional*): Maximum number of symbols. Defaults to the limit of the solver.
            num_return_sequences (`int`, *optional*, defaults to 1): Number of expressions to return per problem.
        """
