"""Kinds of models that losses, caches and trainers distinguish."""

from dataclasses import dataclass, replace
from typing import Any

from torch import Tensor, nn
from transformers import PreTrainedModel

from .prediction_kind import CLASSES, EXPRESSION_POSITIONS, PredictionKind
from .solver import Solver


@dataclass(frozen=True)
class ModelKind:
    """Kind of model, which decides how its outputs are read. To add a kind, define it here and extend [`kind_of`]."""

    name: str  # key of the trainers' `ADAPTERS`, and noun in messages
    is_solver: bool = False  # the model finds expressions, which are scored by their answers
    per_position: bool = False  # losses are means over positions, not over rows
    has_decoder: bool = False  # a decoder stack reads the labels and generates
    prediction: PredictionKind = CLASSES  # what a soft loss compares and a teacher cache stores

    @property
    def reduction(self) -> str:
        """Reduction of a logit loss that is added to the model's own loss; see [`LogitDistillationLoss`]."""
        # A solver's own loss sums over the nodes of a tree and averages over problems.
        return "batchmean" if self.is_solver else "mean"

    def num_symbols(self, model: Any) -> int | None:
        """Return the number of logit columns before the row's own numbers, or `None` if logits have no numbers."""
        return model.vocabulary.num_symbols if self.prediction.has_numbers else None

    def encoder(self, model: Any) -> nn.Module:
        """Return the model without decoder and heads."""
        return model.encoder if self.is_solver else getattr(model, "base_model", model)


SOLVER = ModelKind("solver", is_solver=True, prediction=EXPRESSION_POSITIONS)
CLASSIFIER = ModelKind("classifier")
TOKEN_MODEL = ModelKind("token model", per_position=True)
SEQ2SEQ = ModelKind("sequence-to-sequence model", per_position=True, has_decoder=True)


def has_exclusive_classes(model: Any) -> bool:
    """Return whether a row has one correct class, as a softmax over the classes assumes."""
    return getattr(getattr(model, "config", None), "problem_type", None) != "multi_label_classification"


def kind_of(model: Any, logits: Tensor | None = None) -> ModelKind:
    """Return the kind of a model. `logits` distinguish token classifiers from sequence classifiers."""
    if isinstance(model, Solver):
        return SOLVER if model.prediction is SOLVER.prediction else replace(SOLVER, prediction=model.prediction)
    # Without the wrapper of peft's adapters.
    base = model.get_base_model() if hasattr(model, "get_base_model") else model
    if isinstance(base, PreTrainedModel) and base.config.is_encoder_decoder and base.can_generate():
        return SEQ2SEQ
    return TOKEN_MODEL if logits is not None and logits.dim() > 2 else CLASSIFIER
