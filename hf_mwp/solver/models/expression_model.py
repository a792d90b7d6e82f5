"""Declarations of solvers and decoders about their predictions and inputs."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from typing import Any

from hf_mwp.compress.models.prediction_kind import EXPRESSION_POSITIONS, PredictionKind
from hf_mwp.runtime.output_vocabulary import OutputVocabulary
from hf_mwp.solver.batches.mwp_processor import MwpProcessor


class ExpressionModel(ABC):
    """
    Declarations of a model that predicts expressions: a [`Solver`], or a [`Decoder`] within an [`MwpSolver`].

    Attributes:
        prediction ([`PredictionKind`]): Kind of prediction that `forward` returns.
        extra_columns (`tuple[str, ...]`): Columns that [`MwpProcessor`] adds to encoded problems for the collator:
            `"question_positions"` (`list[int]`, the question's tokens in order; the last token contains the last
            character) and `"number_values"` (`list[str]`, exact values that `Fraction` accepts).
        extra_inputs (`tuple[str, ...]`): Further batch entries that a solver's `solve` and a decoder's `generate`
            accept: `"number_groups"` `(B, N)` and `"question_positions"` `(B, Q)`, -1 where padded.
        target_error (`Callable`, *optional*): Method that returns why the target of an encoded row cannot be learned,
            or `None`. Training skips rows with an error. Not set if every target can be learned.
        runs_in_numpy (`bool`): Whether [`runtime`] can search with its weights, so that the solver can be exported.
    """

    prediction: PredictionKind = EXPRESSION_POSITIONS
    extra_columns: tuple[str, ...] = ()
    extra_inputs: tuple[str, ...] = ()
    target_error: Callable[[Mapping[str, Any]], str | None] | None = None
    runs_in_numpy: bool = False

    @property
    @abstractmethod
    def vocabulary(self) -> OutputVocabulary:
        """Return the output symbols. The problem's numbers have the ids that follow."""

    @abstractmethod
    def make_collator(self, processor: MwpProcessor) -> Callable[[list[dict[str, Any]]], dict[str, Any]]:
        """Return the collator for rows encoded by the processor. Batch entries are passed to `forward` if its
        signature lists them. Batches with targets contain `labels`."""
