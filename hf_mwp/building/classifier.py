"""Classifiers and regressors of texts: built anew, made of a teacher, and loaded."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from os import PathLike
from typing import TYPE_CHECKING, Any

from ..options import given_options
from ..usage_error import UsageError
from .encoder import parse_layers, set_dropout
from .model_sources import load_config, load_tokenizer, loading
from .solver import MAX_LENGTH, SolverArguments
from .student import StudentArguments, prune_student


if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerBase

# Options of a solver that say something about a classifier too.
USED = (
    *("encoder", "encoder_layers", "encoder_config", "tokenizer", "max_length", "dropout", "attn_implementation"),
    *("lora_rank", "lora_alpha", "lora_dropout", "lora_targets"),
)


def build_classifier(
    classes: Sequence[str], options: SolverArguments
) -> tuple[PreTrainedModel, PreTrainedTokenizerBase]:
    """
    Create a classifier to train, and its tokenizer, which truncates texts to the given length or the model's maximum.

    The options choose the start: `encoder` with a new head, `encoder_config` and `tokenizer` (a student with random
    weights), or `solver`, an existing classifier. A regression has no classes. Raise `UsageError` for options that do
    not apply to a classifier, and for a model that cannot be loaded or is no classifier.
    """
    from ..models import MwpStudentForSequenceClassification

    if unused := [name for name in given_options(options) if name not in (*USED, "solver")]:
        raise UsageError(f"`{unused[0]}` is for solvers of math word problems: leave it out for a classifier.")
    if options.solver is not None:
        model, tokenizer = load_classifier(options.solver, classes, options.dropout)
    elif options.encoder_config is not None:
        tokenizer = load_tokenizer(options.tokenizer)
        model = MwpStudentForSequenceClassification(options.random_config(tokenizer, **head_fields(classes)))
    else:
        tokenizer = load_tokenizer(options.tokenizer or options.encoder)
        model = _on_encoder(options.encoder, classes, options.dropout, options.attn_implementation)
        layers = parse_layers(options.encoder_layers)
        if layers is not None:
            model = _layers_of(model, layers)
    options.add_lora(model)
    return model, cut_to(tokenizer, model, options.max_length or MAX_LENGTH)


def load_classifier(
    name: str, classes: Sequence[str] | None = None, dropout: float | None = None
) -> tuple[PreTrainedModel, PreTrainedTokenizerBase]:
    """
    Loads a classifier or regressor of texts, of any class of `AutoModelForSequenceClassification`, and its tokenizer,
    from a folder or the Hub. `UsageError` if there is no such model, it is no classifier, or it does not have these
    `classes` in this order (none for a regression).
    """
    config = load_config(name)
    if not _classifies(config):
        found = " and ".join(config.architectures or ()) or config.model_type
        raise UsageError(
            f"{name} holds a {found}, but a classifier of texts is needed; `hf-mwp train --task ... --encoder {name}` "
            "makes one of an encoder."
        )
    if classes is not None:
        wanted, found = list(classes), [str(config.id2label[index]) for index in range(config.num_labels)]
        if len(found) != max(len(wanted), 1):
            told = f"{len(wanted)} classes ({', '.join(wanted)})" if wanted else "one output, for a regression"
            raise UsageError(f"{name} has {len(found)} outputs, and the task needs {told}: train one for it.")
        if {*found} == {*wanted} and found != wanted:
            raise UsageError(
                f"{name} numbers its classes otherwise ({', '.join(found)}) than the task ({', '.join(wanted)}): "
                "train one for it."
            )
    set_dropout(config, dropout)
    model = _load(name, config)
    return model, cut_to(load_tokenizer(name), model)


def is_classifier(name: str | PathLike) -> bool:
    """Return whether a folder or Hub repository has a readable classifier or regressor of texts."""
    try:
        return _classifies(load_config(str(name)))
    except UsageError:
        return False


def make_student_classifier(
    teacher: PreTrainedModel,
    tokenizer: PreTrainedTokenizerBase,
    batches: Callable[[], Iterable[Mapping[str, Any]]],
    options: StudentArguments,
) -> PreTrainedModel:
    """
    Create the student of a distillation: by default the teacher's first layers with its pooler and classifier. The
    student has the teacher's tokens and classes; teacher and tokenizer are not changed.

    `batches` returns encoded training texts with labels: a projected student is fitted to the texts, and the heads of
    a pruned student are scored by the labels. Raise `UsageError` for a student that has other tokens or classes or
    cannot be loaded, and `ValueError` for sizes or layers that the teacher does not have.
    """
    from ..distillation import project_student
    from ..models import MwpStudentForSequenceClassification

    if options.new_decoder:
        raise UsageError("`new_decoder` does nothing for a classifier: leave it out.")
    regresses = teacher.config.num_labels == 1
    classes = [] if regresses else [teacher.config.id2label[each] for each in range(teacher.config.num_labels)]
    source = options.student or options.student_encoder
    if source is not None:
        if options.student is not None:
            student, own = load_classifier(source, classes)
        else:
            student, own = _on_encoder(source, classes, options.student_dropout), load_tokenizer(source)
        if own.get_vocab() != tokenizer.get_vocab():
            raise UsageError(f"{source} has another tokenizer than its teacher; distillation needs the same.")
        return student

    layers = options.layers_of(teacher) if options.student_init in ("cut", "project") else None
    if options.student_init == "cut":
        return _layers_of(teacher, layers, **options.dropouts)
    if options.student_init == "project":
        student = project_student(teacher, sample=batches(), layers=layers, **options.sizes, **options.dropouts)
        return _layers_of(student, None, **head_fields(classes))
    if options.student_init == "prune":
        return prune_student(teacher, batches(), options.sparsity)
    return MwpStudentForSequenceClassification(options.random_config(teacher, tokenizer, **head_fields(classes)))


def head_fields(classes: Sequence[str]) -> dict[str, Any]:
    """Fields of a configuration that say what a classifier tells apart; a regression has no classes."""
    if not classes:
        return {"num_labels": 1, "problem_type": "regression"}
    return {
        "id2label": dict(enumerate(classes)),
        "label2id": {name: number for number, name in enumerate(classes)},
        "problem_type": "single_label_classification",
    }


def _on_encoder(
    name: str, classes: Sequence[str], dropout: float | None, attention: str | None = None
) -> PreTrainedModel:
    """A pretrained encoder with a head for these classes: a new one, unless it has one of this shape."""
    config = load_config(name, **head_fields(classes))
    set_dropout(config, dropout)
    return _load(name, config, ignore_mismatched_sizes=True, attn_implementation=attention)


def _classifies(config: Any) -> bool:
    return any(each.endswith("ForSequenceClassification") for each in config.architectures or ())


def _load(name: str, config: Any, **options) -> PreTrainedModel:
    from transformers import AutoModelForSequenceClassification

    options |= {"config": config, "dtype": "float32", "use_safetensors": True}
    with loading(f"The classifier {name}"):
        return AutoModelForSequenceClassification.from_pretrained(name, trust_remote_code=False, **options)


def _layers_of(model: PreTrainedModel, layers: int | list[int] | None, **fields) -> PreTrainedModel:
    from ..data.training_lineage import inherit_training_texts
    from ..models import MwpStudentForSequenceClassification

    student = MwpStudentForSequenceClassification.from_encoder(model, layers=layers, **fields)
    inherit_training_texts(student, model)
    return student


def cut_to(
    tokenizer: PreTrainedTokenizerBase, model: PreTrainedModel, length: int | None = None
) -> PreTrainedTokenizerBase:
    """Let a tokenizer cut texts to a length, and to what the model has positions for."""
    from ..models.positions import count_positions

    rooms = [tokenizer.model_max_length, length]
    if hasattr(model.config, "max_position_embeddings"):
        rooms.append(count_positions(model.config))
    tokenizer.model_max_length = min(room for room in rooms if room is not None)
    return tokenizer
