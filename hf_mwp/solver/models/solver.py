"""Interface of solvers of math word problems."""

from abc import abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from torch import Tensor, nn
from transformers import PreTrainedModel

from hf_mwp.solver.batches.mwp_collator import MwpCollator
from hf_mwp.solver.batches.mwp_processor import MwpProcessor

from .expression_model import ExpressionModel
from .solve_output import SolveOutput
from .solver_kind import SOLVER, SolverKind


class Solver(ExpressionModel):
    """
    Base class of models that read problems and find expressions over their numbers, such as [`MwpSolver`]. Their
    declarations about predictions and inputs are in [`~models.expression_model.ExpressionModel`].

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
        prediction_rules (`Mapping[str, Any]`): Settings by name that change the predictions for a target.
    """

    encoder: PreTrainedModel
    prediction_rules: Mapping[str, Any] = {}

    @property
    def kind(self) -> SolverKind:
        """Return the kind of model, with the predictions of this solver."""
        if self.prediction is SOLVER.prediction:
            return SOLVER
        return replace(SOLVER, prediction=self.prediction)

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
        score_margin: float | None = None,
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
            score_margin (`float`, *optional*): Incomplete expressions whose log probability is more than this below
                that of the best one are dropped.
        """
