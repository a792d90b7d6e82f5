"""Knowledgeable scores of heads and neurons, measured by gradients of gates."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from typing import Any

import torch
from accelerate.utils import send_to_device
from torch import Tensor, nn
from torch.nn.utils.rnn import pad_sequence

from hf_mwp.compress.models.model_kind import has_exclusive_classes, kind_of
from hf_mwp.compress.models.model_outputs import named_outputs, shape_of
from hf_mwp.utils.checked_types import checked
from hf_mwp.utils.usage_error import UsageError

from .gates import HeadGates, NeuronGates
from .head_importance import left_unchanged
from .knowledgeable_scores import KnowledgeableScores, UnitScores, shared_groups


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
    section 3.2): expressiveness `P` by the teacher's own loss and, with a trial student, student-friendliness `Q` by
    the distillation loss, with gradients through the teacher's softmax. The teacher's own loss must be a mean over
    rows or, for models that predict tokens, over labels; then it is converted to a mean over rows of sums over labels.
    `per_example` sums absolute gradients of single examples, which is the paper's expectation. Otherwise, those of
    each batch's mean loss are summed, as in the authors' implementation; they depend on the size and order of batches.
    Raises `UsageError` if batches or labels are missing, logits differ in shape, or scores are not finite, and
    `ValueError` if the encoder type is not supported or the encoder has gates.
    """
    with left_unchanged(teacher, student), HeadGates(teacher) as heads, NeuronGates(teacher) as neurons:
        dtype = torch.promote_types(teacher.dtype, torch.float32)
        head_ones = [values.to(dtype) for values in heads.values]
        neuron_ones = [values.to(dtype) for values in neurons.values]

        def new_gates(num_rows: int) -> list[Tensor]:
            """Set the teacher's gates to new leaf tensors of ones: one row for all examples, or one row for each."""
            leaves = []
            for ones in head_ones + neuron_ones:
                if per_example:
                    ones = ones.expand(num_rows, -1)
                leaves.append(ones.clone().requires_grad_())
            heads.values = leaves[: len(head_ones)]
            neurons.values = leaves[len(head_ones) :]
            return leaves

        def score(gradients: tuple[Tensor, ...]) -> list[Tensor]:
            scores = []
            for gradient in gradients:
                score = gradient.abs().double()
                if per_example:
                    score = score.sum(0)
                scores.append(score)
            return scores

        sums, settings = sum_gradients(teacher, batches, student, temperature, new_gates, score, per_example)
    counts = ([1] * len(head_ones), [1] * len(neuron_ones))
    groups = shared_groups(teacher)
    scores = [replace(scores_of_layers(loss_sums, counts), groups=groups) for loss_sums in sums]
    return KnowledgeableScores(*scores, about={"per_example": per_example, **settings})


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
    sums = []
    num_batches = 0
    num_examples = 0
    for batch in batches:
        batch = send_to_device(dict(batch), teacher.device)
        num_rows = next(len(values) for values in batch.values() if isinstance(values, Tensor))
        # One forward pass of teacher and student, then one backward pass for each loss.
        tensors = inputs(num_rows)
        with torch.enable_grad():
            losses = batch_losses(teacher, student, batch, temperature)
        for index, loss in enumerate(losses):
            if per_example:
                # The mean loss times the number of rows has the gradient of each row at the gates of that row.
                loss = loss * num_rows
            is_last = index + 1 == len(losses)
            gradients = torch.autograd.grad(loss, tensors, retain_graph=not is_last, materialize_grads=True)
            scores = score(gradients)
            if num_batches:
                torch._foreach_add_(sums[index], scores)
            else:
                sums.append(scores)
        num_batches += 1
        num_examples += num_rows
    if not num_batches:
        raise UsageError("Scores need examples, but the split is empty. Choose a split with examples.")
    return sums, {"temperature": temperature, "batches": num_batches, "examples": num_examples}


def scores_of_layers(sums: list[Tensor], counts: Sequence[Sequence[int]]) -> UnitScores:
    """Return scores from sums of `counts` tensors in each layer: heads (attention) first, then neurons."""
    tensors = iter(sums)
    arrays = []
    for name, num_tensors in zip(("heads", "neurons"), counts, strict=True):
        rows = []
        for layer, size in enumerate(num_tensors):
            # A layer without units has an empty row.
            row = torch.zeros(0, dtype=sums[0].dtype)
            row = torch.cat([row, *[tensor.flatten().cpu() for tensor in islice(tensors, size)]])
            if not row.isfinite().all():
                raise UsageError(f"Scores are not finite for {name} of layer {layer}. Check the models' weights.")
            rows.append(row)
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
    student = student_logits.detach().to(dtype)
    teacher = teacher_logits.to(dtype)
    if teacher.shape[-1] == 1 or not exclusive:
        losses = (student - teacher).square().sum(-1) / 2
    else:
        probabilities = (teacher / temperature).softmax(-1)
        # Avoid NaN from 0 times the logarithm of 0.
        log_student = (student / temperature).log_softmax(-1).masked_fill(probabilities == 0, 0.0)
        losses = -(probabilities * log_student).sum(-1) * (temperature**2 / 2)
    if mask is not None:
        losses = losses.where(mask.bool(), 0.0)
    if losses.dim() > 1:
        losses = losses.flatten(1).sum(1)
    return losses


def batch_losses(teacher: nn.Module, student: nn.Module | None, batch: Mapping, temperature: float) -> list[Tensor]:
    """Compute the teacher's own loss and, with a student, the distillation loss, as means over rows."""
    teacher_output = named_outputs(teacher, batch)
    labels = batch.get("labels")
    model_kind = kind_of(teacher, teacher_output.get("logits"))
    if teacher_output.get("loss") is None:
        names = " and ".join(f"`{name}`" for name in model_kind.labels)
        raise UsageError(f"Expressiveness needs the teacher's loss. Add {names} to the batches.")
    prediction = model_kind.prediction
    loss = teacher_output["loss"].mean()
    valid = model_kind.positions(batch)
    if model_kind.per_position:
        # Convert the mean over labels to a mean over rows of the sums over labels, as solvers have it.
        loss = loss * valid.sum() / len(labels)
    if student is None:
        return [loss]
    with torch.no_grad():
        student_output = named_outputs(student, batch)
    # A model may have several outputs to compare; the loss of a row is the weighted sum over them.
    losses = 0.0
    for name in prediction.outputs:
        student_logits = student_output.get(name)
        teacher_logits = teacher_output.get(name)
        shape = shape_of(student_logits)
        teacher_shape = shape_of(teacher_logits)
        if shape is None or shape != teacher_shape:
            raise UsageError(
                f"The {name} of the trial student have the shape {shape}, the teacher's {teacher_shape}. Use two "
                "models of the same kind with logits of equal shapes."
            )
        mask = prediction.mask(name, teacher_logits, valid)
        student_logits = prediction.class_scores(name, student_logits, batch)
        teacher_logits = prediction.class_scores(name, teacher_logits, batch)
        exclusive = has_exclusive_classes(teacher)
        losses_of_output = distillation_losses(student_logits, teacher_logits, mask, temperature, exclusive)
        losses = losses + prediction.part_weight * losses_of_output
    return [loss, losses.mean()]
