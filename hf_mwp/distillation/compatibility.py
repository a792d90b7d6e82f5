"""Checks that a student can learn from a teacher, before any training."""

from collections.abc import Mapping, Sequence
from typing import Any

from torch import Tensor, nn

from ..data.batches.mwp_processor import MwpProcessor
from ..models.model_kind import kind_of
from ..usage_error import UsageError
from .features import Features
from .objectives import Objective, PredictionObjective


def check_frozen_teacher(student: nn.Module, teacher: nn.Module) -> None:
    """Raise `ValueError` if teacher and student share weights: training the one would change the other."""
    if student is teacher:
        raise ValueError("Student and teacher are the same model: give a copy as one of them (`copy.deepcopy`).")
    owned = {parameter.data_ptr(): name for name, parameter in teacher.named_parameters() if parameter.numel()}
    for name, parameter in student.named_parameters():
        if parameter.numel() and parameter.data_ptr() in owned:
            raise ValueError(
                f"The student's {name} is the teacher's {owned[parameter.data_ptr()]}, so the teacher would change "
                "while the student learns: copy the weights (`copy.deepcopy`)."
            )


def check_embeddings(student: nn.Module, teacher: nn.Module) -> None:
    """Raise `ValueError` if two models embed different numbers of tokens: they cannot read the same ids."""
    ours, theirs = map(_num_embeddings, (student, teacher))
    if ours is not None and theirs is not None and ours != theirs:
        raise ValueError(
            f"The student embeds {ours} tokens, the teacher {theirs}: both must read the same tokenizer's ids. Make "
            "the student with the teacher's tokenizer or processor; if one of them only has spare rows, or reads by a "
            "tokenizer of its own and only predictions are compared, give the teacher's as well "
            "(`teacher_processing_class`). A sequence-to-sequence student of any tokenizer learns from texts that the "
            "teacher generates (`hf-mwp pseudo-label`)."
        )


def check_decoding(student: nn.Module, teacher: nn.Module) -> None:
    """Raise `ValueError` if the decoders of two models would read the same labels differently, or one has none."""
    if not kind_of(teacher).has_decoder:
        raise ValueError(
            f"The student is a sequence-to-sequence model, but the teacher, a `{type(teacher).__name__}`, is none. "
            "Give a teacher of the same kind."
        )
    for name in ("decoder_start_token_id", "pad_token_id"):
        ours, theirs = (getattr(model.config, name, None) for model in (student, teacher))
        if ours != theirs:
            raise ValueError(
                f"The student's config has {name}={ours}, the teacher's {theirs}: their decoders would read the same "
                "labels differently. Make the student with `make_student`, or set the teacher's value."
            )


def _num_embeddings(model: nn.Module) -> int | None:
    try:
        return model.get_input_embeddings().num_embeddings
    except (AttributeError, NotImplementedError):
        return None  # no model of texts


def check_solvers(student: nn.Module, teacher: nn.Module, teacher_processing: MwpProcessor | None = None) -> None:
    """
    Raise `ValueError` unless two solvers have the same symbols and embed the same number of tokens. A teacher with a
    processor of its own must embed the tokens of that processor.
    """
    if not kind_of(teacher).is_solver:
        raise ValueError(f"The student is a solver, but the teacher, a `{type(teacher).__name__}`, is none.")
    ours, theirs = student.vocabulary, teacher.vocabulary
    for name in ("operators", "constants"):
        if list(getattr(ours, name)) != list(getattr(theirs, name)):
            raise ValueError(
                f"The student's {name} are {list(getattr(ours, name))}, the teacher's {list(getattr(theirs, name))}: "
                "probabilities can only be compared over the same symbols in the same order. Build the student with "
                "the teacher's processor."
            )
    if student.prediction is not teacher.prediction:
        raise ValueError(
            f"The student predicts {student.prediction.name}, the teacher {teacher.prediction.name}: only decoders of "
            "the same kind can be compared. Train a teacher with the student's decoder (`--decoder`)."
        )
    rules, others = student.prediction_rules, teacher.prediction_rules
    different = [name for name in rules if rules[name] != others.get(name)]
    if different:
        name = different[0]
        raise ValueError(
            f"The student's decoder has {name}={rules[name]}, the teacher's {others.get(name)}: they would judge "
            "different candidates. Make the student of the teacher, or give it the same `decoder_config`."
        )
    if teacher_processing is not None:
        teacher_processing.check_model(teacher)
    else:
        check_embeddings(student, teacher)


def reads_other_tokens(processing: Any, teacher_processing: Any) -> bool:
    """Return whether two processors tokenize a text differently."""
    processors = [each for each in (processing, teacher_processing) if isinstance(each, MwpProcessor)]
    if len(processors) < 2:
        return False
    ours, theirs = ((each.tokenizer.get_vocab(), each.number_tokens) for each in processors)
    return ours != theirs


def check_reading(processing: Any, teacher_processing: Any) -> None:
    """
    Raise `ValueError` unless two processors or tokenizers turn a text into the same ids; processors of math word
    problems may have other tokens if their numbers and symbols are the same.
    """
    tokenizers = [getattr(each, "tokenizer", each) for each in (processing, teacher_processing)]
    if not reads_other_tokens(processing, teacher_processing) and (
        tokenizers[0].get_vocab() != tokenizers[1].get_vocab()
    ):
        raise ValueError(
            f"Student and teacher have different tokenizers (of {len(tokenizers[0])} and {len(tokenizers[1])} "
            "tokens): the same ids would be different words to them. Build the student with the teacher's tokenizer; "
            "a sequence-to-sequence one may also learn from texts that the teacher generates (`hf-mwp pseudo-label`)."
        )
    for name in ("vocabulary", "parse_number_words", "language"):
        ours, theirs = getattr(processing, name, None), getattr(teacher_processing, name, None)
        if ours != theirs:
            raise ValueError(
                f"The student's processor has {name}={ours}, the teacher's {theirs}: both must read problems in the "
                "same way. Use the teacher's processor."
            )


def check_only_predictions(objectives: Sequence[Objective], processing: Any, teacher_processing: Any) -> None:
    """Raise `UsageError` if an objective compares more than predictions of models with different tokenizers."""
    others = [each.name for each in objectives if not isinstance(each, PredictionObjective)]
    if others:
        sizes = [len(each.tokenizer) for each in (processing, teacher_processing)]
        raise UsageError(
            f"Student and teacher have different tokenizers (of {sizes[0]} and {sizes[1]} tokens), so only their "
            f"predictions can be compared, and {', '.join(others)} compare what is inside: set `hidden_loss=None` "
            "(`none`) and `embedding_weight=0`, give objectives on predictions, or build the student with the "
            "teacher's tokenizer."
        )


def check_outputs(student: Any, teacher: Any) -> None:
    """Raise `ValueError` unless both models return outputs with named fields."""
    for who, output in (("student", student), ("teacher", teacher)):
        if not hasattr(output, "get"):
            raise ValueError(f"The {who} returns a {type(output).__name__}; distillation needs outputs with names.")


def check_losses(losses: Mapping[str, Tensor], student: Features, teacher: Features) -> None:
    """Raise `ValueError` if a loss of some examples is NaN or infinite; the message names the model at fault."""
    names = [f"loss_{name}" for name, loss in losses.items() if not loss.isfinite()]
    if names:
        broken = {"teacher": _broken(teacher), "student": _broken(student)}
        causes = [f"{who} ({', '.join(which[:3])})" for who, which in broken.items() if which]
        outputs = f"The outputs of the {' and the '.join(causes)}" if causes else "The losses"
        raise ValueError(
            f"{outputs} on two training examples are NaN or infinite, so nothing can be learned ({', '.join(names)}). "
            "Check the weights of the models, or load them in fp32."
        )


def _broken(features: Features) -> list[str]:
    """Return the names of the outputs that are NaN or infinite, the first layer first."""
    stacks = (("", "encoder"), ("decoder_", "decoder"))
    outputs = {f"{prefix}hidden_{n}": each for prefix, stack in stacks for n, each in enumerate(features.stack(stack))}
    outputs |= {} if features.get("logits") is None else {"logits": features["logits"]}
    # A class that is forbidden has the logit `-inf`.
    return [name for name, each in outputs.items() if each.isnan().any() or each.isposinf().any()]
