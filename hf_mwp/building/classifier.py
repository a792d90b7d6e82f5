"""Functions that build, load and derive text classifiers and regressors."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from ..options.checks import check_used
from ..usage_error import UsageError
from .encoder import derive_student, parse_layers, set_dropout
from .model_sources import check_same_tokens, is_classifier, load_config, load_pretrained, load_tokenizer
from .solver import MAX_LENGTH, SolverArguments
from .student import StudentArguments, prune_student


if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerBase

# Solver options that also apply to a classifier.
USED = (
    *("solver", "encoder", "encoder_layers", "encoder_config", "tokenizer", "max_length", "dropout"),
    "attn_implementation",
    *("lora_rank", "lora_alpha", "lora_dropout", "lora_targets"),
)


def build_classifier(
    classes: Sequence[str], options: SolverArguments
) -> tuple[PreTrainedModel, PreTrainedTokenizerBase]:
    """Create a classifier to train, or a regressor without `classes`, and its tokenizer, which truncates texts to
    `max_length` or the model's maximum. The model starts from `encoder` with a new head, from `encoder_config` and
    `tokenizer` (random weights), or from `solver`, a classifier. Raises `UsageError` for options that do not apply."""
    from ..models import MwpStudentForSequenceClassification

    check_used(options, USED, "applies only to solvers of math word problems: omit it for a classifier")
    if options.solver is not None:
        model, tokenizer = load_classifier(options.solver, classes, options.dropout)
    elif options.encoder_config is not None:
        tokenizer = load_tokenizer(options.tokenizer)
        model = MwpStudentForSequenceClassification(options.random_config(tokenizer, **head_fields(classes)))
    else:
        model = _on_encoder(options.encoder, classes, options.dropout, options.attn_implementation)
        tokenizer = load_tokenizer(options.tokenizer or options.encoder, model)
        if (layers := parse_layers(options.encoder_layers)) is not None:
            model = derive_student(MwpStudentForSequenceClassification, model, layers=layers)
    options.add_lora(model)
    return model, cut_to(tokenizer, model, options.max_length or MAX_LENGTH)


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
        wanted, found = list(classes), [str(config.id2label[index]) for index in range(config.num_labels)]
        if len(found) != max(len(wanted), 1) or ({*found} == {*wanted} and found != wanted):
            raise UsageError(
                f"{name} has {len(found)} outputs ({', '.join(found)}), but the task needs {max(len(wanted), 1)} "
                f"({', '.join(wanted) or 'a regression'}), in this order. Train a model for this task."
            )
    set_dropout(config, dropout)
    model = load_pretrained(AutoModelForSequenceClassification, name, config=config)
    return model, cut_to(load_tokenizer(name), model, None)


def make_student_classifier(
    teacher: PreTrainedModel, tokenizer: PreTrainedTokenizerBase, batches: Callable, options: StudentArguments
) -> PreTrainedModel:
    """Create a student, by default from the teacher's first layers and classifier. `batches` returns encoded training
    texts with labels, to fit a projected or score a pruned student. Raises `UsageError` if tokens or classes
    differ."""
    from ..distillation import project_student
    from ..models import MwpStudentForSequenceClassification

    regresses = teacher.config.num_labels == 1
    classes = [] if regresses else [teacher.config.id2label[each] for each in range(teacher.config.num_labels)]
    source = options.student or options.student_encoder
    if source is not None:
        if options.student is not None:
            student, own = load_classifier(source, classes)
        else:
            student, own = _on_encoder(source, classes, options.student_dropout, None), load_tokenizer(source)
        check_same_tokens(source, own, tokenizer, "Distillation needs the same tokenizer.")
        return student

    layers = options.layers_of(teacher) if options.student_init in ("cut", "project") else None
    if options.student_init == "cut":
        return derive_student(MwpStudentForSequenceClassification, teacher, layers=layers, **options.dropouts)
    if options.student_init == "project":
        student = project_student(teacher, sample=batches(), layers=layers, **options.sizes, **options.dropouts)
        return derive_student(MwpStudentForSequenceClassification, student, **head_fields(classes))
    if options.student_init == "prune":
        return prune_student(teacher, batches(), options.student_sparsity)
    return MwpStudentForSequenceClassification(options.random_config(teacher, tokenizer, **head_fields(classes)))


def head_fields(classes: Sequence[str]) -> dict[str, Any]:
    """Return the configuration fields for a classifier with these classes, or for a regression if there are none."""
    if not classes:
        return {"num_labels": 1, "problem_type": "regression"}
    return {
        "id2label": dict(enumerate(classes)),
        "label2id": {name: number for number, name in enumerate(classes)},
        "problem_type": "single_label_classification",
    }


def _on_encoder(name: str, classes: Sequence[str], dropout: float | None, attention: str | None) -> PreTrainedModel:
    """Load a pretrained encoder with a head for these classes; an existing head is kept if its shape fits."""
    from transformers import AutoModelForSequenceClassification

    config = load_config(name, **head_fields(classes))
    set_dropout(config, dropout)
    options = {"ignore_mismatched_sizes": True, "attn_implementation": attention}
    return load_pretrained(AutoModelForSequenceClassification, name, config=config, **options)


def cut_to(tokenizer: PreTrainedTokenizerBase, model: PreTrainedModel, length: int | None) -> PreTrainedTokenizerBase:
    """Limit the text length of a tokenizer to `length` and to the number of positions of the model."""
    from ..models.architecture import count_positions

    rooms = [tokenizer.model_max_length, length]
    if hasattr(model.config, "max_position_embeddings"):
        rooms.append(count_positions(model.config))
    tokenizer.model_max_length = min(room for room in rooms if room is not None)
    return tokenizer
