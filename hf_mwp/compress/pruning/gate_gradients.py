"""Knowledgeable scores of heads and neurons, measured by gradients of gates."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import torch
from accelerate.utils import send_to_device
from torch import Tensor, nn
from torch.nn.utils.rnn import pad_sequence

from hf_mwp.compress.models.model_kind import CLASSIFIER, has_exclusive_classes, kind_of
from hf_mwp.compress.models.model_outputs import named_outputs
from hf_mwp.utils.checked_types import checked
from hf_mwp.utils.usage_error import UsageError

from .gates import HeadGates, NeuronGates
from .head_importance import left_unchanged
from .knowledgeable_scores import KnowledgeableScores, UnitScores


@checked
def measure_scores(
    teacher: nn.Module,
    batches: Iterable[Mapping[str, Any]],
    student: nn.Module | None = None,
    *,
    per_example: bool = False,
    temperature: float = 2.0,
) -> KnowledgeableScores:
    """
    Measure absolute gradients with respect to gates (factors of 1) on the teacher's heads and neurons (Yang et al.,
    section 3.2): expressiveness `P` by the teacher's own loss, which must be a mean over rows (or over labels, for
    sequence-to-sequence models), and, with a trial student, student-friendliness `Q` by the distillation loss, with
    gradients through the teacher's softmax. `per_example` sums absolute gradients of single examples, which is the
    paper's expectation. Otherwise, those of each batch's mean loss are summed, as in the authors' implementation; they
    depend on the size and order of batches. Raises `UsageError` if batches or labels are missing, logits differ in
    shape, or scores are not finite, and `ValueError` if the encoder type is not supported or the encoder has gates.
    """
    with left_unchanged(teacher, student), HeadGates(teacher) as heads, NeuronGates(teacher) as neurons:
        dtype = torch.promote_types(teacher.dtype, torch.float32)
        ones = [[each.to(dtype) for each in kind.values] for kind in (heads, neurons)]

        def new_gates(rows: int) -> list[Tensor]:
            """Set the teacher's gates to new leaf tensors of ones: one row for all examples, or one row for each."""
            found = []
            for gates, kind in zip((heads, neurons), ones, strict=True):
                each = (one.expand(rows, -1) if per_example else one for one in kind)
                gates.values = leaves = [one.clone().requires_grad_() for one in each]
                found += leaves
            return found

        def score(gradients: tuple[Tensor, ...]) -> list[Tensor]:
            found = [each.abs().double() for each in gradients]
            return [each.sum(0) for each in found] if per_example else found

        sums, about = sum_gradients(teacher, batches, student, temperature, new_gates, score, per_example)
    scores = (scores_of_layers(each, [[1] * len(kind) for kind in ones]) for each in sums)
    return KnowledgeableScores(*scores, about={"per_example": per_example, **about})


def sum_gradients(
    teacher: nn.Module,
    batches: Iterable[Mapping[str, Any]],
    student: nn.Module | None,
    temperature: float,
    inputs: Callable[[int], Sequence[Tensor]],
    score: Callable[[tuple[Tensor, ...]], list[Tensor]],
    per_example: bool = False,
) -> tuple[list[list[Tensor]], dict[str, Any]]:
    """Return the scores of each loss of [`batch_losses`], summed over batches, and the settings of the measurement.
    `inputs(rows)` returns the tensors to differentiate a batch of `rows` rows by; `score` scores their gradients."""
    sums: list[list[Tensor]] = []
    num_batches = num_examples = 0
    for batch in batches:
        batch = send_to_device(dict(batch), teacher.device)
        rows = next(len(each) for each in batch.values() if isinstance(each, Tensor))
        # One forward pass of teacher and student, then one backward pass for each loss.
        tensors = inputs(rows)
        with torch.enable_grad():
            losses = batch_losses(teacher, student, batch, temperature)
        for index, loss in enumerate(losses):
            # Multiplied by the number of rows, the mean loss has the gradient of each row at the gates of that row.
            loss, more = loss * rows if per_example else loss, index + 1 < len(losses)
            found = score(torch.autograd.grad(loss, tensors, retain_graph=more, materialize_grads=True))
            if num_batches:
                torch._foreach_add_(sums[index], found)
            else:
                sums.append(found)
        num_batches, num_examples = num_batches + 1, num_examples + rows
    if not num_batches:
        raise UsageError("Scores need examples, but the split is empty. Choose a split with examples.")
    return sums, {"temperature": temperature, "batches": num_batches, "examples": num_examples}


def scores_of_layers(sums: list[Tensor], counts: Sequence[Sequence[int]]) -> UnitScores:
    """Return scores from sums of `counts` tensors in each layer: heads (attention) first, then neurons."""
    found, arrays, nothing = iter(sums), [], torch.zeros(0, dtype=sums[0].dtype)
    for name, kind in zip(("heads", "neurons"), counts, strict=True):
        rows = [torch.cat([nothing, *(next(found).flatten().cpu() for _ in range(count))]) for count in kind]
        if wrong := [layer for layer, row in enumerate(rows) if not row.isfinite().all()]:
            raise UsageError(f"Scores are not finite for {name} of layer {wrong[0]}. Check the models' weights.")
        arrays.append(pad_sequence(rows, batch_first=True, padding_value=torch.nan))
    return UnitScores(*arrays)


def distillation_losses(
    student_logits: Tensor,
    teacher_logits: Tensor,
    mask: Tensor | None = None,
    temperature: float = 2.0,
    exclusive: bool = True,
) -> Tensor:
    """
    Compute the distillation loss of each row, with gradients for the teacher's logits only:
    `τ² · CE(softmax(teacher / τ), student / τ) / 2`, summed over valid positions, or half the squared difference for a
    single class (regression) and for classes that are not `exclusive`. The factors τ² and 1/2 of the authors'
    implementation, which the paper (section 3.1) does not have, cancel when scores are normalised. Logits are `(rows,
    classes)`, or `(rows, positions, classes)` with a `mask` `(rows, positions)`; masked classes are the smallest
    number or `-inf`.
    """
    dtype = torch.promote_types(teacher_logits.dtype, torch.float32)
    student, teacher = student_logits.detach().to(dtype), teacher_logits.to(dtype)
    if teacher.shape[-1] == 1 or not exclusive:
        losses = (student - teacher).square().sum(-1) / 2
    else:
        probabilities = (teacher / temperature).softmax(-1)
        # Avoid NaN from 0 times the logarithm of 0.
        log_student = (student / temperature).log_softmax(-1).masked_fill(probabilities == 0, 0.0)
        losses = -(probabilities * log_student).sum(-1) * (temperature**2 / 2)
    if mask is not None:
        losses = losses.where(mask.bool(), 0.0)
    return losses.flatten(1).sum(1) if losses.dim() > 1 else losses


def batch_losses(teacher: nn.Module, student: nn.Module | None, batch: Mapping, temperature: float) -> list[Tensor]:
    """Compute the teacher's own loss and, with a student, the distillation loss, as means over rows."""
    outputs, labels = named_outputs(teacher, batch), batch.get("labels")
    if outputs.get("loss") is None:
        raise UsageError("Expressiveness needs the teacher's loss. Add `labels` to the batches.")
    kind = kind_of(teacher, outputs.get("logits"))
    loss = outputs["loss"].mean()
    if kind.has_decoder:
        # Convert the mean over labels to a mean over rows of the sums over labels, as solvers have it.
        loss = loss * (labels != -100).sum() / len(labels)
    if student is None:
        return [loss]
    with torch.no_grad():
        scores = named_outputs(student, batch)
    valid = None if kind is CLASSIFIER else labels != -100
    # A solver may have several outputs to compare; the loss of a row is the sum over them.
    summed = 0.0
    for name in kind.prediction.outputs:
        pair = (scores.get(name), outputs.get(name))
        shape, teacher_shape = (None if each is None else tuple(each.shape) for each in pair)
        if shape is None or shape != teacher_shape or (kind.per_position and not kind.has_decoder):
            raise UsageError(
                f"The {name} of the trial student have the shape {shape}, the teacher's {teacher_shape}. Use two "
                "classifiers, regressors, solvers or sequence-to-sequence models with equal shapes."
            )
        mask = kind.prediction.mask(name, pair[1], valid)
        ours, theirs = (kind.prediction.class_scores(name, each) for each in pair)
        summed = summed + distillation_losses(ours, theirs, mask, temperature, has_exclusive_classes(teacher))
    return [loss, summed.mean()]
