"""Classifiers and regressors of texts: built anew, made of a teacher, and loaded."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import fields
from os import PathLike
from typing import TYPE_CHECKING, Any

from ..usage_error import UsageError
from .encoder import parse_layers, set_dropout
from .model_sources import check_folder, check_tokenizer
from .solver import SolverArguments
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
    Makes a classifier to train, and its tokenizer, which cuts texts to what is asked for or the model has room for.

    Args:
        classes (`Sequence[str]`): Names of the classes; none for a regression.
        options ([`SolverArguments`]): What to make: `encoder` with a new head, `encoder_config` and `tokenizer` (a
            student from random weights), or `solver`, a classifier to go on training.

    Raises:
        UsageError: options that say nothing about a classifier, or a model that cannot be loaded or is none.
    """
    from ..models import MwpStudentForSequenceClassification

    _check_options(options)
    if options.solver is not None:
        model, tokenizer = load_classifier(options.solver, classes, options.dropout)
    elif options.encoder_config is not None:
        tokenizer = _load_tokenizer(options.tokenizer)
        model = MwpStudentForSequenceClassification(options.random_config(tokenizer, **head_fields(classes)))
    else:
        tokenizer = _load_tokenizer(options.tokenizer or options.encoder)
        model = _on_encoder(options.encoder, classes, options.dropout, options.attn_implementation)
        layers = parse_layers(options.encoder_layers)
        if layers is not None:
            model = _layers_of(model, layers)
    options.add_lora(model)
    return model, _cut_to(tokenizer, model, options.max_length)


def load_classifier(
    name: str, classes: Sequence[str] | None = None, dropout: float | None = None
) -> tuple[PreTrainedModel, PreTrainedTokenizerBase]:
    """
    Loads a classifier or regressor of texts, of any class of `AutoModelForSequenceClassification`, and its tokenizer.

    Args:
        name (`str`): Folder or Hub id.
        classes (`Sequence[str]`, *optional*): Those that it must have, in this order; none for a regression.
        dropout (`float`, *optional*): Another dropout.

    Raises:
        UsageError: there is no such model, it is no classifier, or it has other classes.
    """
    from transformers import AutoConfig

    check_folder(name)
    try:
        config = AutoConfig.from_pretrained(name)
    except (OSError, ValueError) as error:
        raise UsageError(f"{name} cannot be loaded: {error}") from error
    if not _classifies(config):
        found = " and ".join(config.architectures or ()) or config.model_type
        raise UsageError(
            f"{name} holds a {found}, but a classifier of texts is needed; `hf-mwp train --task ... --encoder {name}` "
            "makes one of an encoder."
        )
    if classes is not None:
        _check_classes(name, config, classes)
    set_dropout(config, dropout)
    model = _load(name, config)
    return model, _cut_to(_load_tokenizer(name), model)


def is_classifier(name: str | PathLike) -> bool:
    """Whether a folder or Hub repository has a classifier or regressor of texts; not if it has nothing to be read."""
    from transformers import AutoConfig

    try:
        return _classifies(AutoConfig.from_pretrained(str(name)))
    except (OSError, ValueError):
        return False


def make_student_classifier(
    teacher: PreTrainedModel,
    tokenizer: PreTrainedTokenizerBase,
    batches: Callable[[], Iterable[Mapping[str, Any]]],
    options: StudentArguments,
) -> PreTrainedModel:
    """
    Makes the student of a distillation: by default the teacher's first layers, with its pooler and classifier.

    Args:
        teacher (`PreTrainedModel`), tokenizer (`PreTrainedTokenizerBase`):
            The teacher, whose tokens and classes are the student's. Neither is changed.
        batches (`Callable`): Gives encoded batches of training texts, which a projected student is fitted to, with
            labels, by which a pruned one is scored.
        options ([`StudentArguments`]): What to make.

    Raises:
        UsageError: a student with other tokens or classes, or that cannot be loaded.
        ValueError: sizes or layers that the teacher does not have.
    """
    from ..distillation import project_student
    from ..distillation.students.cut_student import choose_layers
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
            student, own = _on_encoder(source, classes, options.student_dropout), _load_tokenizer(source)
        if own.get_vocab() != tokenizer.get_vocab():
            raise UsageError(f"{source} has another tokenizer than its teacher; distillation needs the same.")
        return student
    if options.student_start == "prune":
        return prune_student(teacher, batches(), options.sparsity)
    layers, fields = parse_layers(options.student_layers), options.sizes | options.dropouts
    starts: dict[str, Callable[[list[int]], PreTrainedModel]] = {
        "cut": lambda layers: _layers_of(teacher, layers, **options.dropouts),
        "project": lambda layers: _layers_of(
            project_student(teacher, layers=layers, sample=batches(), **fields), None, **head_fields(classes)
        ),
        "random": lambda layers: MwpStudentForSequenceClassification(
            _random_config(teacher, tokenizer, len(layers), head_fields(classes) | fields)
        ),
    }
    if isinstance(layers, int) and options.student_start == "random":
        layers = list(range(layers))
    elif isinstance(layers, int):
        layers = choose_layers(layers, teacher.config.num_hidden_layers, options.student_layer_choice)
    return starts[options.student_start](layers)


def head_fields(classes: Sequence[str]) -> dict[str, Any]:
    """Fields of a configuration that say what a classifier tells apart; a regression has no classes."""
    if not classes:
        return {"num_labels": 1, "problem_type": "regression"}
    numbered = dict(enumerate(classes))
    problem = {"problem_type": "single_label_classification"}
    return {"id2label": numbered, "label2id": {name: number for number, name in numbered.items()}, **problem}


def _random_config(
    teacher: PreTrainedModel, tokenizer: PreTrainedTokenizerBase, layers: int, fields: Mapping[str, Any]
) -> Any:
    from ..models import MwpStudentConfig
    from ..models.positions import count_positions

    return MwpStudentConfig(
        vocab_size=teacher.config.vocab_size,
        num_hidden_layers=layers,
        pad_token_id=tokenizer.pad_token_id or 0,
        max_position_embeddings=count_positions(teacher.config),
        **fields,
    )


def _on_encoder(
    name: str, classes: Sequence[str], dropout: float | None, attention: str | None = None
) -> PreTrainedModel:
    """A pretrained encoder with a head for these classes: a new one, unless it has one of this shape."""
    from transformers import AutoConfig

    check_folder(name)
    try:
        config = AutoConfig.from_pretrained(name, **head_fields(classes))
    except (OSError, ValueError) as error:
        raise UsageError(f"{name} cannot be loaded: {error}") from error
    set_dropout(config, dropout)
    options = {} if attention is None else {"attn_implementation": attention}
    return _load(name, config, ignore_mismatched_sizes=True, **options)


def _classifies(config: Any) -> bool:
    return any(each.endswith("ForSequenceClassification") for each in config.architectures or ())


def _load(name: str, config: Any, **options) -> PreTrainedModel:
    from transformers import AutoModelForSequenceClassification

    options |= {"config": config, "dtype": "float32", "use_safetensors": True}
    try:
        return AutoModelForSequenceClassification.from_pretrained(name, **options)
    except (OSError, ValueError) as error:
        raise UsageError(f"{name} cannot be loaded as a classifier of texts: {error}") from error


def _load_tokenizer(name: str) -> PreTrainedTokenizerBase:
    from transformers import AutoTokenizer

    check_tokenizer(name)
    try:
        return AutoTokenizer.from_pretrained(name)
    except (OSError, ValueError) as error:
        raise UsageError(f"The tokenizer {name} cannot be loaded: {error}") from error


def _layers_of(model: PreTrainedModel, layers: int | list[int] | None, **fields) -> PreTrainedModel:
    from ..data.training_lineage import inherit_training_texts
    from ..models import MwpStudentForSequenceClassification

    student = MwpStudentForSequenceClassification.from_encoder(model, layers=layers, **fields)
    inherit_training_texts(student, model)
    return student


def _cut_to(
    tokenizer: PreTrainedTokenizerBase, model: PreTrainedModel, length: int | None = None
) -> PreTrainedTokenizerBase:
    from ..models.positions import count_positions

    rooms = [tokenizer.model_max_length, length]
    if hasattr(model.config, "max_position_embeddings"):
        rooms.append(count_positions(model.config))
    tokenizer.model_max_length = min(room for room in rooms if room is not None)
    return tokenizer


def _check_options(options: SolverArguments) -> None:
    """Refuses options that were given and are for solvers alone."""
    plain = SolverArguments(encoder=".")
    for field in fields(options):
        if field.name not in (*USED, "solver") and getattr(options, field.name) != getattr(plain, field.name):
            raise UsageError(f"`{field.name}` is for solvers of math word problems: leave it out for a classifier.")


def _check_classes(name: str, config: Any, classes: Sequence[str]) -> None:
    wanted = list(classes)
    if config.num_labels != max(len(wanted), 1):
        told = f"{len(wanted)} classes ({', '.join(wanted)})" if wanted else "one output, for a regression"
        raise UsageError(f"{name} has {config.num_labels} outputs, and the task needs {told}: train one for it.")
    found = [str(config.id2label[index]) for index in range(config.num_labels)]
    if {*found} == {*wanted} and found != wanted:
        raise UsageError(
            f"{name} numbers its classes otherwise ({', '.join(found)}) than the task ({', '.join(wanted)}): train "
            "one for it."
        )
