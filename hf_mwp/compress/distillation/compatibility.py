"""Checks, before any training, that a student can learn from a teacher."""

from collections.abc import Mapping, Sequence
from typing import Any

from torch import Tensor, nn

from hf_mwp.compress.models.model_kind import check_equal
from hf_mwp.utils.usage_error import UsageError

from .features import Features
from .objectives import Objective, PredictionObjective


def check_frozen_teacher(student: nn.Module, teacher: nn.Module) -> None:
    """Raise `ValueError` if student and teacher share weights, since training would change the teacher."""
    # Empty parameters and those on the meta device have no memory.
    teacher_pointers = {parameter.data_ptr() for parameter in teacher.parameters()} - {0}
    for name, parameter in student.named_parameters():
        if parameter.data_ptr() in teacher_pointers:
            raise ValueError(
                f"The student's {name} is also a weight of the teacher (the same model?), so training would change "
                "the teacher. Pass a copy (`copy.deepcopy`)."
            )


def needs_own_inputs(processing: Any, teacher_processing: Any) -> bool:
    """Return whether a teacher needs inputs of its own, since its processor masks numbers and has different tokens.
    Raises `ValueError` if tokenizers differ in tokens, or processors in how they read numbers and symbols."""
    if processing is None:
        raise UsageError("`teacher_processing_class` is compared with `processing_class`. Pass the student's, too.")
    student_tokenizer = getattr(processing, "tokenizer", processing)
    teacher_tokenizer = getattr(teacher_processing, "tokenizer", teacher_processing)
    same_tokens = student_tokenizer.get_vocab() == teacher_tokenizer.get_vocab()
    share_tokens = same_tokens or _differ_in_added_tokens(student_tokenizer, teacher_tokenizer)
    mask_numbers = hasattr(processing, "number_tokens") and hasattr(teacher_processing, "number_tokens")
    if not mask_numbers and not share_tokens:
        raise ValueError(
            f"Student and teacher have different tokenizers (with {len(student_tokenizer)} and "
            f"{len(teacher_tokenizer)} tokens), so the same ids mean different words. Create the student with the "
            "teacher's tokenizer. A student that generates texts can also learn from those that the teacher generates "
            "(for encoder-decoder models: `hf-mwp pseudo-label`)."
        )
    remedy = "Both processors must read problems in the same way: use the teacher's processor."
    for name in ("vocabulary", "parse_number_words", "number_reading", "language"):
        check_equal(name, getattr(processing, name, None), getattr(teacher_processing, name, None), remedy)
    if not mask_numbers:
        return False
    return not (same_tokens and processing.number_tokens == teacher_processing.number_tokens)


def count_shared_tokens(processing: Any, teacher_processing: Any) -> int:
    """Return the number of first token ids that mean the same in the tokenizers of student and teacher."""
    student_tokens = _tokens_by_id(getattr(processing, "tokenizer", processing))
    teacher_tokens = _tokens_by_id(getattr(teacher_processing, "tokenizer", teacher_processing))
    count = 0
    while count in student_tokens and student_tokens[count] == teacher_tokens.get(count):
        count += 1
    return count


def _tokens_by_id(tokenizer: Any) -> dict[int, str]:
    return {number: token for token, number in tokenizer.get_vocab().items()}


def _differ_in_added_tokens(student_tokenizer: Any, teacher_tokenizer: Any) -> bool:
    """Return whether two vocabularies are the same but for tokens that were added at the end."""
    num_shared = count_shared_tokens(student_tokenizer, teacher_tokenizer)
    for tokenizer in (student_tokenizer, teacher_tokenizer):
        added = tokenizer.get_added_vocab()
        for token, number in tokenizer.get_vocab().items():
            if number >= num_shared and token not in added:
                return False
    return num_shared > 0


def check_only_predictions(objectives: Sequence[Objective]) -> None:
    """Raise `UsageError` if models with different tokenizers are compared by more than their predictions."""
    names = [objective.name for objective in objectives if not isinstance(objective, PredictionObjective)]
    if names:
        raise UsageError(
            "Student and teacher have different tokenizers, so only their predictions can be compared, but "
            f"{', '.join(names)} compare hidden outputs. Set `hidden_loss=None` (`none`) and `embedding_weight=0`, "
            "or create the student with the teacher's tokenizer."
        )


def check_losses(losses: Mapping[str, Tensor], student: Features, teacher: Features) -> None:
    """Raise `ValueError` if a loss is NaN or infinite. The message lists the model outputs that are."""
    names = [f"loss_{name}" for name, loss in losses.items() if not loss.isfinite()]
    if names:
        causes = []
        for model, features in (("teacher", teacher), ("student", student)):
            outputs = _broken(features)
            if outputs:
                causes.append(f"{model} ({', '.join(outputs[:3])})")
        outputs = "The losses"
        if causes:
            outputs = f"The outputs of the {' and the '.join(causes)}"
        raise ValueError(
            f"{outputs} on the first training examples are NaN or infinite ({', '.join(names)}). Check the weights of "
            "the models, or load them in fp32."
        )


def _broken(features: Features) -> list[str]:
    """Return the names of the outputs that are NaN or infinite, in the order of the layers."""
    outputs = {}
    for stack in ("hidden", "decoder_hidden"):
        for layer, states in enumerate(features.layers(stack)):
            outputs[f"{stack}_{layer}"] = states
    if features.get("logits") is not None:
        outputs["logits"] = features["logits"]
    broken = []
    for name, values in outputs.items():
        # Forbidden classes have the logit `-inf`.
        if values.isnan().any() or values.isposinf().any():
            broken.append(name)
    return broken
