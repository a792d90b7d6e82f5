"""Kinds of models that losses, caches and trainers distinguish."""

from dataclasses import dataclass, replace
from inspect import Parameter, signature
from typing import Any

from accelerate.utils import extract_model_from_parallel
from torch import Tensor, nn
from transformers import PreTrainedModel

from hf_mwp.solver.models.solver import Solver

from .prediction_kind import CLASSES, EXPRESSION_POSITIONS, PIXELS, PredictionKind


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
        return unwrapped(model).vocabulary.num_symbols if self.prediction.has_numbers else None

    def encoder(self, model: Any) -> nn.Module:
        """Return the model without decoder and heads."""
        model = unwrapped(model)
        return model.encoder if self.is_solver else getattr(model, "base_model", model)


SOLVER = ModelKind("solver", is_solver=True, prediction=EXPRESSION_POSITIONS)
CLASSIFIER = ModelKind("classifier")
TOKEN_MODEL = ModelKind("token model", per_position=True)
SEQ2SEQ = ModelKind("sequence-to-sequence model", per_position=True, has_decoder=True)
CAUSAL = ModelKind("causal language model", per_position=True)
IMAGE_SEGMENTER = ModelKind("image segmentation model", prediction=PIXELS)


def unwrapped(model: Any) -> Any:
    """Return the solver or Transformers model within wrappers: of distributed training, `torch.compile` and peft, and
    modules of the user with this model as their only module that has parameters. Other models are returned without the
    wrappers of distributed training and `torch.compile`."""
    if not isinstance(model, nn.Module):
        return model
    model = extract_model_from_parallel(model, keep_torch_compile=False)
    inner = model
    while not isinstance(inner, Solver | PreTrainedModel):
        if hasattr(inner, "get_base_model"):
            # Peft may add modules of its own, such as prompts.
            inner = inner.get_base_model()
            continue
        holders = [child for child in inner.children() if has_parameters(child)]
        if len(holders) != 1 or has_parameters(inner, recurse=False):
            return model
        inner = holders[0]
    return inner


def input_names(model: nn.Module) -> set[str]:
    """Return the names of the arguments that a model reads. A wrapper that accepts any argument passes all on."""
    parameters = signature(model.forward).parameters
    names = set(parameters)
    if any(each.kind is Parameter.VAR_KEYWORD for each in parameters.values()):
        names |= set(signature(unwrapped(model).forward).parameters)
    return names


def has_parameters(module: nn.Module, recurse: bool = True) -> bool:
    """Return whether a module has parameters, of its own or, with `recurse`, of its children."""
    return next(module.parameters(recurse), None) is not None


def has_exclusive_classes(model: Any) -> bool:
    """Return whether a row has one correct class, as a softmax over the classes assumes."""
    return getattr(getattr(unwrapped(model), "config", None), "problem_type", None) != "multi_label_classification"


def kind_of(model: Any, logits: Tensor | None = None) -> ModelKind:
    """Return the kind of a model, which may be [`unwrapped`]. `logits` distinguish classifiers of positions or pixels
    from those of rows."""
    model = unwrapped(model)
    if isinstance(model, Solver):
        return SOLVER if model.prediction is SOLVER.prediction else replace(SOLVER, prediction=model.prediction)
    is_per_row = logits is not None and logits.dim() <= 2
    if isinstance(model, PreTrainedModel) and model.can_generate():
        if model.config.is_encoder_decoder:
            return SEQ2SEQ
        # A wrapper may choose the scores of some tokens, as a classifier does.
        if not is_per_row:
            return CAUSAL
    if logits is None or is_per_row:
        return CLASSIFIER
    return TOKEN_MODEL if logits.dim() == 3 else IMAGE_SEGMENTER
