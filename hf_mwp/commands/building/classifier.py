"""Functions that build, load and derive text classifiers and regressors."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from hf_mwp.utils.checks import check_used
from hf_mwp.utils.usage_error import UsageError

from .encoder import derive_student, parse_layers, set_dropout
from .model_sources import check_same_tokens, is_classifier, load_config, load_pretrained, load_tokenizer
from .solver import MAX_LENGTH, SolverArguments
from .student import StudentArguments, prune_student


if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerBase

# Options of `SolverArguments` that also apply to a classifier.
CLASSIFIER_OPTIONS = (
    *("solver", "encoder", "encoder_layers", "encoder_config", "tokenizer", "max_length", "dropout"),
    "attn_implementation",
    *("lora_rank", "lora_alpha", "lora_dropout", "lora_targets"),
)


def build_classifier(
    classes: Sequence[str], options: SolverArguments
) -> tuple[PreTrainedModel, PreTrainedTokenizerBase]:
    """Create a classifier to train (a regressor if `classes` is empty) and its tokenizer, which truncates texts to
    `max_length` or the model's maximum. The model is `encoder` with a new head, has random weights (`encoder_config`,
    `tokenizer`), or is the classifier `solver`. Raises `UsageError` for options that do not apply."""
    from hf_mwp.compress.models import MwpStudentForSequenceClassification

    check_used(options, CLASSIFIER_OPTIONS, "applies only to solvers, not to a classifier. Remove it")
    if options.solver is not None:
        model, tokenizer = load_classifier(options.solver, classes, options.dropout)
    elif options.encoder_config is not None:
        tokenizer = load_tokenizer(options.tokenizer)
        model = MwpStudentForSequenceClassification(options.random_config(tokenizer, **head_fields(classes)))
    else:
        model = _load_with_head(options.encoder, classes, options.dropout, options.attn_implementation)
        tokenizer = load_tokenizer(options.tokenizer or options.encoder, model)
        layers = parse_layers(options.encoder_layers)
        if layers is not None:
            model = derive_student(MwpStudentForSequenceClassification, model, layers=layers)
    options.add_lora(model)
    return model, limit_length(tokenizer, model, options.max_length or MAX_LENGTH)


def load_classifier(
    name: str, classes: Sequence[str] | None = None, dropout: float | None = None
) -> tuple[PreTrainedModel, PreTrainedTokenizerBase]:
    """Load a classifier and its tokenizer. Raises `UsageError` for another model or, if given, other `classes`."""
    from transformers import AutoModelForSequenceClassification

    config = load_config(name)
    if not is_classifier(config):
        raise UsageError(
            f"{name} is not a text classifier, but of type {config.model_type!r} ({config.architectures}). Train a "
            f"classifier from an encoder with `hf-mwp train --task ... --encoder {name}`."
        )
    if classes is not None:
        labels = [str(config.id2label[index]) for index in range(config.num_labels)]
        num_outputs = max(len(classes), 1)
        is_reordered = set(labels) == set(classes) and labels != list(classes)
        if len(labels) != num_outputs or is_reordered:
            raise UsageError(
                f"{name} has {len(labels)} outputs ({', '.join(labels)}), but the task needs {num_outputs} "
                f"({', '.join(classes) or 'a regression'}), in this order. Train a model for this task."
            )
    set_dropout(config, dropout)
    model = load_pretrained(AutoModelForSequenceClassification, name, config=config)
    return model, limit_length(load_tokenizer(name), model)


def make_student_classifier(
    teacher: PreTrainedModel, tokenizer: PreTrainedTokenizerBase, batches: Callable, options: StudentArguments
) -> PreTrainedModel:
    """Create the student of a classifier, by default from the teacher's first layers and its head. `batches` returns
    encoded training texts with labels, on which a projected student is fitted, and the units of a pruned student are
    scored. Raises `UsageError` if the tokens or classes of an existing student differ from the teacher's."""
    from hf_mwp.compress.distillation import project_student
    from hf_mwp.compress.models import MwpStudentForSequenceClassification

    classes = []
    if teacher.config.num_labels > 1:
        classes = [teacher.config.id2label[index] for index in range(teacher.config.num_labels)]
    source = options.student or options.student_encoder
    if source is not None:
        if options.student is not None:
            student, student_tokenizer = load_classifier(source, classes)
        else:
            student = _load_with_head(source, classes, options.student_dropout, None)
            student_tokenizer = load_tokenizer(source)
        check_same_tokens(source, student_tokenizer, tokenizer, "Distillation needs the same tokenizer.")
        return student

    layers = None
    if options.student_init in ("cut", "project"):
        layers = options.layers_of(teacher)
    if options.student_init == "cut":
        return derive_student(MwpStudentForSequenceClassification, teacher, layers=layers, **options.dropouts)
    if options.student_init == "project":
        student = project_student(teacher, sample=batches(), layers=layers, **options.sizes, **options.dropouts)
        return derive_student(MwpStudentForSequenceClassification, student, **head_fields(classes))
    if options.student_init == "prune":
        return prune_student(teacher, batches(), options.student_sparsity)
    return MwpStudentForSequenceClassification(options.random_config(teacher, tokenizer, **head_fields(classes)))


def head_fields(classes: Sequence[str]) -> dict[str, Any]:
    """Return the configuration fields of a classifier with these classes, or of a regressor if there are none."""
    if not classes:
        return {"num_labels": 1, "problem_type": "regression"}
    return {
        "id2label": dict(enumerate(classes)),
        "label2id": {name: number for number, name in enumerate(classes)},
        "problem_type": "single_label_classification",
    }


def _load_with_head(
    name: str, classes: Sequence[str], dropout: float | None, attention: str | None
) -> PreTrainedModel:
    """Load a pretrained encoder with a head for these classes. An existing head of the same shape is kept."""
    from transformers import AutoModelForSequenceClassification

    config = load_config(name, **head_fields(classes))
    set_dropout(config, dropout)
    options = {"ignore_mismatched_sizes": True, "attn_implementation": attention}
    return load_pretrained(AutoModelForSequenceClassification, name, config=config, **options)


def limit_length(
    tokenizer: PreTrainedTokenizerBase, model: PreTrainedModel, max_length: int | None = None
) -> PreTrainedTokenizerBase:
    """Lower the maximum length of a tokenizer to `max_length` and to the number of positions of a model."""
    from hf_mwp.compress.models.architecture import count_positions

    limits = (tokenizer.model_max_length, max_length, count_positions(model.config))
    tokenizer.model_max_length = min(limit for limit in limits if limit is not None)
    return tokenizer
