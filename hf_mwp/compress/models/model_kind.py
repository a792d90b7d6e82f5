"""Kinds of models that losses, caches and trainers distinguish."""

from dataclasses import dataclass
from inspect import Parameter, signature
from typing import Any

from accelerate.utils import extract_model_from_parallel
from torch import Tensor, nn
from transformers import PreTrainedModel

from .prediction_kind import CLASSES, PIXELS, PredictionKind


@dataclass(frozen=True)
class ModelKind:
    """
    Kind of model, which decides how its outputs are read and how trainers evaluate it. A model class may name its kind
    in an attribute or property `kind`; [`kind_of`] recognises the kinds of this file in Transformers models.
    """

    name: str  # noun in messages
    is_solver: bool = False  # the model finds expressions, which are scored by their answers
    per_position: bool = False  # losses are means over positions, not over rows
    has_decoder: bool = False  # a decoder stack reads the labels and generates
    prediction: PredictionKind = CLASSES  # what a soft loss compares and a teacher cache stores
    reduction: str = "mean"  # of a logit loss that is added to the model's own loss; see [`LogitDistillationLoss`]

    def adapter_class(self) -> type:
        """Return the class that adapts trainers to models of this kind, a [`~trainers.model_adapter.ModelAdapter`]."""
        # Imported here, because trainers are slow to import.
        from hf_mwp.compress.trainers.model_adapter import ModelAdapter

        return ModelAdapter

    def num_symbols(self, model: Any) -> int | None:
        """Return the number of logit columns before the row's own numbers, or `None` if logits have no numbers."""
        if not self.prediction.has_numbers:
            return None
        return unwrapped(model).vocabulary.num_symbols

    def encoder(self, model: Any) -> nn.Module:
        """Return the model without decoder and heads."""
        model = unwrapped(model)
        return getattr(model, "base_model", model)


class Seq2SeqKind(ModelKind):
    """Kind of sequence-to-sequence models."""

    def adapter_class(self) -> type:
        from hf_mwp.compress.trainers.seq2seq_adapter import Seq2SeqAdapter

        return Seq2SeqAdapter


CLASSIFIER = ModelKind("classifier")
TOKEN_MODEL = ModelKind("token model", per_position=True)
SEQ2SEQ = Seq2SeqKind("sequence-to-sequence model", per_position=True, has_decoder=True)
CAUSAL = ModelKind("causal language model", per_position=True)
IMAGE_SEGMENTER = ModelKind("image segmentation model", prediction=PIXELS)


def names_its_kind(model: Any) -> bool:
    """Return whether the class of a model names its kind. Wrappers only pass on the attribute of their model."""
    return hasattr(type(model), "kind") and isinstance(model.kind, ModelKind)


def unwrapped(model: Any) -> Any:
    """Return the Transformers model, or the model that names its kind, within wrappers: of distributed training,
    `torch.compile` and peft, and modules of the user with this model as their only module that has parameters. Other
    models are returned without the wrappers of distributed training and `torch.compile`."""
    if not isinstance(model, nn.Module):
        return model
    model = extract_model_from_parallel(model, keep_torch_compile=False)
    inner = model
    while not (isinstance(inner, PreTrainedModel) or names_its_kind(inner)):
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
    kinds_of_parameters = [parameter.kind for parameter in parameters.values()]
    if Parameter.VAR_KEYWORD in kinds_of_parameters:
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
    if names_its_kind(model):
        return model.kind
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
