"""Kinds of models that losses, caches and trainers distinguish."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from inspect import Parameter, signature
from typing import Any

import transformers
from accelerate.utils import extract_model_from_parallel
from torch import Tensor, nn
from transformers import PreTrainedModel

from .batch_inputs import find_token_mask, num_rows, shift_labels
from .head_predictions import ANSWER_SPANS, REPLACED_TOKENS, SENTENCE_ORDER, SENTENCE_PAIRS
from .prediction_kind import CLASSES, NEXT_TOKENS, PIXELS, PredictionKind


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
    label_shift: int = 0  # number of positions from a prediction to its label
    reduction: str = "mean"  # of a logit loss that is added to the model's own loss; see [`LogitDistillationLoss`]
    labels: tuple[str, ...] = ("labels",)  # arguments of `forward` with which the model computes its own loss

    def training_rules_class(self) -> type:
        """Return the rules for training models of this kind: a [`~trainers.training_rules.TrainingRules`] class."""
        # Imported here, because trainers are slow to import.
        from hf_mwp.compress.trainers.training_rules import TrainingRules

        return TrainingRules

    def num_symbols(self, model: Any) -> int | None:
        """Return the number of logit columns before the row's own numbers, or `None` if logits have no numbers."""
        if not self.prediction.has_numbers:
            return None
        return unwrapped(model).vocabulary.num_symbols

    def encoder(self, model: Any) -> nn.Module:
        """Return the model without decoder and heads."""
        model = unwrapped(model)
        return getattr(model, "base_model", model)

    def check_teacher(
        self, student: nn.Module, teacher: nn.Module, processing: Any = None, reads_own_tokens: bool = False
    ) -> None:
        """
        Raise `ValueError` if a student of this kind cannot learn from a teacher.

        Args:
            student (`nn.Module`), teacher (`nn.Module`): The two models.
            processing (*optional*): Tokenizer or processor of the teacher.
            reads_own_tokens (`bool`, *optional*, defaults to `False`): Whether `processing` has other tokens than the
                student's, so that the teacher gets inputs of its own.
        """
        if processing is None:
            check_embeddings(student, teacher)

    def check_inputs(self, model: Any, inputs: Mapping[str, Any]) -> None:
        """Raise `ValueError` if losses on the predictions of a model cannot be computed from the batch."""

    def check_shape(self, model: Any, logits: Tensor | None) -> None:
        """Raise `ValueError` if the classes in the logits of a model cannot be found by their shape."""

    def forward_options(self, model: nn.Module) -> dict[str, Any]:
        """Return further arguments of `forward` in training."""
        return {}

    def teacher_inputs(self, teacher: nn.Module, inputs: Mapping[str, Any]) -> dict[str, Any]:
        """Return the arguments of a teacher of this kind for a batch of the student."""
        return dict(inputs)

    def targets(self, inputs: Mapping[str, Any]) -> Tensor | None:
        """Return the correct class of each prediction, -100 for predictions without one, or `None` without labels."""
        labels = inputs.get("labels")
        return labels if labels is None else shift_labels(labels, self.label_shift)

    def positions(self, inputs: Mapping[str, Any], needs_labels: bool = False) -> Tensor | None:
        """Return the mask `(batch, length)` of the positions, or `(batch,)` of the rows, whose predictions are
        compared, or `None` for all. With `needs_labels`, rows of a classifier with the label -100 are left out."""
        targets = self.targets(inputs)
        if self.per_position:
            return find_token_mask(inputs) if targets is None else targets != -100
        if needs_labels and targets is not None and not targets.is_floating_point():
            return targets != -100
        return None

    def num_items(self, inputs: Mapping[str, Any], needs_labels: bool = False) -> Tensor | int | None:
        """Return the number of items over which a loss on predictions is a mean, or `None` if it is not known."""
        positions = self.positions(inputs, needs_labels)
        if positions is not None:
            return positions.sum()
        return None if self.per_position else num_rows(inputs)


class Seq2SeqKind(ModelKind):
    """Kind of sequence-to-sequence models."""

    def training_rules_class(self) -> type:
        from hf_mwp.compress.trainers.seq2seq_training_rules import Seq2SeqTrainingRules

        return Seq2SeqTrainingRules

    def check_teacher(
        self, student: nn.Module, teacher: nn.Module, processing: Any = None, reads_own_tokens: bool = False
    ) -> None:
        if not kind_of(teacher).has_decoder:
            name = type(teacher).__name__
            raise ValueError(f"The student is a sequence-to-sequence model, but the teacher, a `{name}`, is not.")
        remedy = "Decoders must read labels alike: create the student with `make_student`, or set it."
        student_config = unwrapped(student).config
        teacher_config = unwrapped(teacher).config
        for name in ("decoder_start_token_id", "pad_token_id"):
            check_equal(name, getattr(student_config, name, None), getattr(teacher_config, name, None), remedy)
        super().check_teacher(student, teacher, processing, reads_own_tokens)

    def check_inputs(self, model: Any, inputs: Mapping[str, Any]) -> None:
        if inputs.get("labels") is None:
            raise ValueError("Labels are needed to select the predictions of a decoder. Pass `labels`.")


class CausalKind(ModelKind):
    """Kind of causal language models. The logits of each position predict the label of the next one, as in the loss of
    Transformers' models; so labels are the input ids, with -100 where no loss is wanted."""

    def training_rules_class(self) -> type:
        from hf_mwp.compress.trainers.causal_training_rules import CausalTrainingRules

        return CausalTrainingRules

    def check_teacher(
        self, student: nn.Module, teacher: nn.Module, processing: Any = None, reads_own_tokens: bool = False
    ) -> None:
        if kind_of(teacher) is not self:
            name = type(unwrapped(teacher)).__name__
            raise ValueError(f"The student is a causal language model, but the teacher, a `{name}`, is not.")
        super().check_teacher(student, teacher, processing, reads_own_tokens)

    def forward_options(self, model: nn.Module) -> dict[str, Any]:
        # Keys and values are only needed to generate.
        return {"use_cache": False} if "use_cache" in input_names(model) else {}

    def teacher_inputs(self, teacher: nn.Module, inputs: Mapping[str, Any]) -> dict[str, Any]:
        # Without labels, the teacher does not compute its own loss, which copies the logits.
        teacher_inputs = {name: value for name, value in inputs.items() if name != "labels"}
        return teacher_inputs | self.forward_options(teacher)


class ImageSegmenterKind(ModelKind):
    """Kind of models with a class for each pixel of an image."""

    def check_shape(self, model: Any, logits: Tensor | None) -> None:
        model = unwrapped(model)
        shape = tuple(logits.shape)
        num_labels = getattr(getattr(model, "config", None), "num_labels", None)
        if len(shape) != 4 or shape[1] != num_labels:
            raise ValueError(
                f"`{type(model).__name__}` returns logits of the shape {shape}. Only classes of rows "
                "`(batch, classes)`, of positions `(batch, positions, classes)` and of pixels "
                f"`(batch, num_labels={num_labels}, height, width)` can be compared. Set `soft_label_weight=0` or "
                "`prediction_weight=0`, or write an `Objective`."
            )

    def positions(self, inputs: Mapping[str, Any], needs_labels: bool = False) -> Tensor | None:
        return None


class QuestionKind(ModelKind):
    """Kind of models that find the answer to a question in a text, by its first and last token."""

    def positions(self, inputs: Mapping[str, Any], needs_labels: bool = False) -> Tensor | None:
        starts = inputs.get("start_positions")
        tokens = inputs.get("input_ids", inputs.get("inputs_embeds"))
        if not needs_labels or starts is None or tokens is None:
            return None
        # Models of Transformers leave out answers after the last token.
        return starts.view(-1) < tokens.shape[1]


class MultipleChoiceKind(ModelKind):
    """Kind of models that choose one of several texts in a row. Their inputs are `(batch, choices, tokens)`."""

    def training_rules_class(self) -> type:
        from hf_mwp.compress.trainers.multiple_choice_training_rules import MultipleChoiceTrainingRules

        return MultipleChoiceTrainingRules


class ReplacedTokenKind(ModelKind):
    """Kind of models that predict of each token whether it was replaced (ELECTRA)."""

    def positions(self, inputs: Mapping[str, Any], needs_labels: bool = False) -> Tensor | None:
        return find_token_mask(inputs)


class UnmatchedKind(ModelKind):
    """Kind of models whose predictions cannot be compared one by one, such as the boxes of two object detectors."""

    def training_rules_class(self) -> type:
        from hf_mwp.compress.trainers.unmatched_training_rules import UnmatchedTrainingRules

        return UnmatchedTrainingRules

    def check_shape(self, model: Any, logits: Tensor | None) -> None:
        class_name = type(unwrapped(model)).__name__
        raise ValueError(
            f"The predictions of `{class_name}` ({self.name}) do not correspond one to one to those of another model. "
            "Compare hidden states: set `soft_label_weight=0` (labels and hidden states) or `prediction_weight=0` "
            "(only hidden states)."
        )

    def positions(self, inputs: Mapping[str, Any], needs_labels: bool = False) -> Tensor | None:
        return None


CLASSIFIER = ModelKind("classifier")
TOKEN_MODEL = ModelKind("token model", per_position=True)
SEQ2SEQ = Seq2SeqKind("sequence-to-sequence model", per_position=True, has_decoder=True)
CAUSAL = CausalKind("causal language model", per_position=True, prediction=NEXT_TOKENS, label_shift=1)
IMAGE_SEGMENTER = ImageSegmenterKind("image segmentation model", prediction=PIXELS)
POSITION_LABELS = ("start_positions", "end_positions")
QUESTION = QuestionKind("question answering model", prediction=ANSWER_SPANS, labels=POSITION_LABELS)
MULTIPLE_CHOICE = MultipleChoiceKind("multiple choice model")
REPLACED_TOKEN = ReplacedTokenKind("detector of replaced tokens", per_position=True, prediction=REPLACED_TOKENS)
PRETRAINING_LABELS = ("labels", "next_sentence_label")
PRETRAINING = ModelKind("pretraining model", per_position=True, prediction=SENTENCE_PAIRS, labels=PRETRAINING_LABELS)
ORDER_LABELS = ("labels", "sentence_order_label")
ORDER_PRETRAINING = ModelKind("pretraining model", per_position=True, prediction=SENTENCE_ORDER, labels=ORDER_LABELS)
CTC = UnmatchedKind("CTC model")
DETECTOR = UnmatchedKind("object detection model")
INSTANCE_SEGMENTER = UnmatchedKind("instance segmentation model")

# Kinds of models with a head by the labels that only `forward` of this kind reads, and by the Auto class.
LABEL_KINDS = {
    "start_positions": QUESTION,
    "next_sentence_label": PRETRAINING,
    "sentence_order_label": ORDER_PRETRAINING,
}
AUTO_CLASS_KINDS = {
    "AutoModelForMultipleChoice": MULTIPLE_CHOICE,
    "AutoModelForCTC": CTC,
    "AutoModelForObjectDetection": DETECTOR,
    "AutoModelForInstanceSegmentation": INSTANCE_SEGMENTER,
    "AutoModelForUniversalSegmentation": INSTANCE_SEGMENTER,
}


def names_its_kind(model: Any) -> bool:
    """Return whether the class of a model names its kind. Wrappers only pass on the attribute of their model."""
    return hasattr(type(model), "kind") and isinstance(model.kind, ModelKind)


def is_unwrapped(model: Any) -> bool:
    """Return whether a Transformers model, or a model that names its kind, has no wrapper around it. Accelerate looks
    at every module of a model to find this out, which takes long at each training step."""
    is_known = isinstance(model, PreTrainedModel) or names_its_kind(model)
    return is_known and "_orig_mod" not in vars(model)


def unwrapped(model: Any) -> Any:
    """Return the Transformers model, or the model that names its kind, within wrappers: of distributed training,
    `torch.compile` and peft, and modules of the user with this model as their only module that has parameters. Other
    models are returned without the wrappers of distributed training and `torch.compile`."""
    if not isinstance(model, nn.Module) or is_unwrapped(model):
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
    if isinstance(model, nn.Module):
        head_kind = _kind_of_head(type(model), type(getattr(model, "config", None)))
        if head_kind is not None:
            return head_kind
    is_per_row = logits is not None and logits.dim() <= 2
    if isinstance(model, PreTrainedModel) and model.can_generate():
        if model.config.is_encoder_decoder:
            return SEQ2SEQ
        # A wrapper may choose the scores of some tokens, as a classifier does.
        if not is_per_row:
            return CAUSAL
    elif is_per_row and _detects_replaced_tokens(type(model), type(getattr(model, "config", None))):
        return REPLACED_TOKEN
    if logits is None or is_per_row:
        return CLASSIFIER
    return TOKEN_MODEL if logits.dim() == 3 else IMAGE_SEGMENTER


@cache
def _kind_of_head(model_class: type, config_class: type) -> ModelKind | None:
    """Return the kind of models of a class that is recognised by the head, or `None`."""
    names = signature(model_class.forward).parameters
    for label, kind in LABEL_KINDS.items():
        if label in names:
            return kind
    for auto_class, kind in AUTO_CLASS_KINDS.items():
        if _loads(auto_class, model_class, config_class):
            return kind
    return None


@cache
def _detects_replaced_tokens(model_class: type, config_class: type) -> bool:
    """Return whether models of a class are pretrained without a language modelling head."""
    if _loads("AutoModelForMaskedLM", model_class, config_class):
        return False
    return _loads("AutoModelForPreTraining", model_class, config_class)


def _loads(auto_class: str, model_class: type, config_class: type) -> bool:
    """Return whether an Auto class loads a class of models, or one that it is derived from."""
    loaded_class = getattr(transformers, auto_class)._model_mapping.get(config_class, None)
    return isinstance(loaded_class, type) and issubclass(model_class, loaded_class)


def check_equal(name: str, student_value: Any, teacher_value: Any, remedy: str) -> None:
    """Raise `ValueError` if a setting of student and teacher differs."""
    if student_value != teacher_value:
        raise ValueError(f"The student has {name}={student_value}, the teacher has {name}={teacher_value}. {remedy}")


def check_embeddings(student: nn.Module, teacher: nn.Module) -> None:
    """Raise `ValueError` if two models embed different numbers of tokens, since they cannot read the same ids."""
    try:
        student_size = unwrapped(student).get_input_embeddings().num_embeddings
        teacher_size = unwrapped(teacher).get_input_embeddings().num_embeddings
    except (AttributeError, NotImplementedError):
        return  # not text models
    if student_size != teacher_size:
        raise ValueError(
            f"The student embeds {student_size} tokens, the teacher {teacher_size}. Create the student with the "
            "teacher's tokenizer or processor. If one model only has spare rows, or has its own tokenizer and only "
            "predictions are compared, also pass the teacher's (`teacher_processing_class`). A student that generates "
            "texts can also learn from those that the teacher generates (for encoder-decoder models: `hf-mwp "
            "pseudo-label`)."
        )
