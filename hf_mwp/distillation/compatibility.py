"""Checks, before any training, that a student can learn from a teacher."""

from collections.abc import Mapping, Sequence
from typing import Any

from torch import Tensor, nn

from ..data.batches.mwp_processor import MwpProcessor
from ..models.model_kind import kind_of
from ..usage_error import UsageError
from .features import Features
from .objectives import Objective, PredictionObjective


def check_frozen_teacher(student: nn.Module, teacher: nn.Module) -> None:
    """Raise `ValueError` if student and teacher share weights, since training would change the teacher."""
    if student is teacher:
        raise ValueError("Student and teacher are the same model. Pass a copy for one of them (`copy.deepcopy`).")
    owned = {parameter.data_ptr(): name for name, parameter in teacher.named_parameters() if parameter.numel()}
    for name, parameter in student.named_parameters():
        if parameter.numel() and parameter.data_ptr() in owned:
            raise ValueError(
                f"The student's {name} is the teacher's {owned[parameter.data_ptr()]}, so training would change the "
                "teacher. Copy the weights (`copy.deepcopy`)."
            )


def check_embeddings(student: nn.Module, teacher: nn.Module) -> None:
    """Raise `ValueError` if two models embed different numbers of tokens, since they cannot read the same ids."""
    ours, theirs = map(_num_embeddings, (student, teacher))
    if ours is not None and theirs is not None and ours != theirs:
        raise ValueError(
            f"The student embeds {ours} tokens, the teacher {theirs}. Create the student with the teacher's "
            "tokenizer or processor. If one model only has spare rows, or has its own tokenizer and only predictions "
            "are compared, also pass the teacher's (`teacher_processing_class`). A sequence-to-sequence student with "
            "any tokenizer can learn from texts that the teacher generates (`hf-mwp pseudo-label`)."
        )


def check_decoding(student: nn.Module, teacher: nn.Module) -> None:
    """Raise `ValueError` if the teacher has no decoder, or the two decoders would read the same labels differently."""
    if not kind_of(teacher).has_decoder:
        raise ValueError(
            f"The student is a sequence-to-sequence model, but the teacher, a `{type(teacher).__name__}`, is not. "
            "Pass a teacher of the same kind."
        )
    for name in ("decoder_start_token_id", "pad_token_id"):
        ours, theirs = (getattr(model.config, name, None) for model in (student, teacher))
        if ours != theirs:
            raise ValueError(
                f"The student's config has {name}={ours}, the teacher's {theirs}, so their decoders would read the "
                "same labels differently. Create the student with `make_student`, or set the teacher's value."
            )


def _num_embeddings(model: nn.Module) -> int | None:
    try:
        return model.get_input_embeddings().num_embeddings
    except (AttributeError, NotImplementedError):
        return None  # not a text model


def check_solvers(student: nn.Module, teacher: nn.Module, teacher_processing: MwpProcessor | None = None) -> None:
    """
    Raise `ValueError` unless two solvers have the same symbols, the same kind of decoder and the same number of
    embedded tokens. A teacher with its own processor must embed the tokens of that processor.
    """
    if not kind_of(teacher).is_solver:
        raise ValueError(
            f"The student is a solver, but the teacher, a `{type(teacher).__name__}`, is not. Pass a solver as the "
            "teacher."
        )
    ours, theirs = student.vocabulary, teacher.vocabulary
    for name in ("operators", "constants"):
        if list(getattr(ours, name)) != list(getattr(theirs, name)):
            raise ValueError(
                f"The student's {name} are {list(getattr(ours, name))}, the teacher's {list(getattr(theirs, name))}. "
                "Probabilities can only be compared over the same symbols in the same order. Create the student with "
                "the teacher's processor."
            )
    if student.prediction is not teacher.prediction:
        raise ValueError(
            f"The student predicts {student.prediction.name}, the teacher {teacher.prediction.name}. Only decoders "
            "of the same kind can be compared: train a teacher with the student's decoder (`--decoder`)."
        )
    rules, others = student.prediction_rules, teacher.prediction_rules
    different = [name for name in rules if rules[name] != others.get(name)]
    if different:
        name = different[0]
        raise ValueError(
            f"The student's decoder has {name}={rules[name]}, the teacher's {others.get(name)}, so they would score "
            "different candidates. Create the student from the teacher, or pass the same `decoder_config`."
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
    Raise `ValueError` unless two processors or tokenizers turn a text into the same ids. Processors of math word
    problems may have different tokens if their numbers and symbols are the same.
    """
    tokenizers = [getattr(each, "tokenizer", each) for each in (processing, teacher_processing)]
    if not reads_other_tokens(processing, teacher_processing) and (
        tokenizers[0].get_vocab() != tokenizers[1].get_vocab()
    ):
        raise ValueError(
            f"Student and teacher have different tokenizers (with {len(tokenizers[0])} and {len(tokenizers[1])} "
            "tokens), so the same ids mean different words. Create the student with the teacher's tokenizer. A "
            "sequence-to-sequence student can also learn from texts that the teacher generates (`hf-mwp "
            "pseudo-label`)."
        )
    for name in ("vocabulary", "parse_number_words", "language"):
        ours, theirs = getattr(processing, name, None), getattr(teacher_processing, name, None)
        if ours != theirs:
            raise ValueError(
                f"The student's processor has {name}={ours}, the teacher's {theirs}, but both must read problems in "
                "the same way. Use the teacher's processor."
            )


def check_only_predictions(objectives: Sequence[Objective], processing: Any, teacher_processing: Any) -> None:
    """Raise `UsageError` if models with different tokenizers are compared by more than their predictions."""
    others = [each.name for each in objectives if not isinstance(each, PredictionObjective)]
    if others:
        sizes = [len(each.tokenizer) for each in (processing, teacher_processing)]
        raise UsageError(
            f"Student and teacher have different tokenizers (with {sizes[0]} and {sizes[1]} tokens), so only their "
            f"predictions can be compared, but {', '.join(others)} compare hidden outputs. Set `hidden_loss=None` "
            "(`none`) and `embedding_weight=0`, pass only objectives on predictions, or create the student with the "
            "teacher's tokenizer."
        )


def check_outputs(student: Any, teacher: Any) -> None:
    """Raise `ValueError` unless both models return outputs with named fields."""
    for who, output in (("student", student), ("teacher", teacher)):
        if not hasattr(output, "get"):
            raise ValueError(
                f"The {who} returns a {type(output).__name__}. Distillation needs outputs with named fields, such as "
                "a `ModelOutput`."
            )


def check_losses(losses: Mapping[str, Tensor], student: Features, teacher: Features) -> None:
    """Raise `ValueError` if a loss is NaN or infinite. The message lists the model outputs that are."""
    names = [f"loss_{name}" for name, loss in losses.items() if not loss.isfinite()]
    if names:
        broken = {"teacher": _broken(teacher), "student": _broken(student)}
        causes = [f"{who} ({', '.join(which[:3])})" for who, which in broken.items() if which]
        outputs = f"The outputs of the {' and the '.join(causes)}" if causes else "The losses"
        raise ValueError(
            f"{outputs} on two training examples are NaN or infinite ({', '.join(names)}). Check the weights of the "
            "models, or load them in fp32."
        )


def _broken(features: Features) -> list[str]:
    """Return the names of the outputs that are NaN or infinite, in the order of the layers."""
    stacks = (("", "encoder"), ("decoder_", "decoder"))
    outputs = {f"{prefix}hidden_{n}": each for prefix, stack in stacks for n, each in enumerate(features.stack(stack))}
    outputs |= {} if features.get("logits") is None else {"logits": features["logits"]}
    # Forbidden classes have the logit `-inf`.
    return [name for name, each in outputs.items() if each.isnan().any() or each.isposinf().any()]
