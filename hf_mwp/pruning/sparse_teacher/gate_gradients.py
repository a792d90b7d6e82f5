"""Scores of heads and neurons: what gates on them would do to the losses of teacher and student."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import torch
from accelerate.utils import send_to_device
from torch import Tensor, nn
from torch.nn.utils.rnn import pad_sequence

from ...models.model_kind import kind_of
from ...usage_error import UsageError
from ..gates import HeadGates, NeuronGates
from ..head_importance import left_unchanged
from .knowledgeable_scores import KnowledgeableScores, UnitScores


def measure_scores(
    teacher: nn.Module,
    batches: Iterable[Mapping[str, Any]],
    student: nn.Module | None = None,
    *,
    per_example: bool = False,
    temperature: float = 2.0,
) -> KnowledgeableScores:
    """
    Absolute gradients of the teacher's gates, all 1, on its heads and neurons (Yang et al., section 3.2): `P` by its
    own loss on the labels, `Q` by the distillation loss to a trial student, through the teacher's softmax. Both from
    one pass forward, in evaluation mode; weights get no gradients. The models, their modes and gradients, and the
    state of the random numbers stay as they are.

    Args:
        teacher (`nn.Module`):
            A classifier, regressor or solver of math word problems, with an encoder that
            [`~models.architecture.find_encoder`] knows, or a sequence-to-sequence model that it knows. Its loss is
            taken for a mean over rows, that of a sequence-to-sequence model for one over labels.
        batches (`Iterable[Mapping]`): Inputs of both models, in a fixed order; on any device.
        student (`nn.Module`, *optional*): The trial student; without one there is no `Q`.
        per_example (`bool`, *optional*, defaults to `False`):
            Sums of absolute values over examples, the paper's expectation, from gates of shape `(batch, count)` and
            one pass backward a loss. By default, as in the authors' program, sums over batches of the absolute value
            of the batch's mean: they depend on size and order of the batches, and a short one weighs as much as any.
        temperature (`float`, *optional*, defaults to 2.0): τ of the distillation loss; regressors have none.

    Returns:
        [`KnowledgeableScores`], before normalisation.

    Raises:
        UsageError: no batches or labels, logits of other shapes, or numbers that are not finite.
        ValueError: an encoder of an unknown type, or one with gates.
    """
    with left_unchanged(teacher, student), HeadGates(teacher) as heads, NeuronGates(teacher) as neurons:
        dtype = torch.promote_types(teacher.dtype, torch.float32)
        ones = [[None if each is None else each.to(dtype) for each in kind.values] for kind in (heads, neurons)]

        def new_gates(rows: int) -> list[Tensor]:
            """Put gates of 1 on the teacher, leaves of a new graph: one row for all examples, or one for each."""
            for gates, kind in zip((heads, neurons), ones, strict=True):
                each = [one.expand(rows, -1) if per_example and one is not None else one for one in kind]
                gates.values = [None if one is None else one.clone().requires_grad_() for one in each]
            return [each for each in (*heads.values, *neurons.values) if each is not None]

        def score(gradients: tuple[Tensor, ...]) -> list[Tensor]:
            found = [each.abs().double() for each in gradients]
            return [each.sum(0) for each in found] if per_example else found

        sums, about = sum_gradients(teacher, batches, student, temperature, new_gates, score, per_example)
    counts = [[int(each is not None) for each in kind] for kind in ones]
    return KnowledgeableScores(
        *(scores_of_layers(each, counts) for each in sums), about={"per_example": per_example, **about}
    )


def sum_gradients(
    teacher: nn.Module,
    batches: Iterable[Mapping[str, Any]],
    student: nn.Module | None,
    temperature: float,
    inputs: Callable[[int], Sequence[Tensor]],
    score: Callable[[tuple[Tensor, ...]], list[Tensor]],
    per_example: bool = False,
) -> tuple[list[list[Tensor]], dict[str, Any]]:
    """
    Return by loss, see [`batch_losses`], the sums over batches of what `score` makes of the gradients by `inputs`,
    which are given the number of rows; and how they were measured.
    """
    sums: list[list[Tensor]] = []
    num_batches = num_examples = 0
    for batch in batches:
        batch = send_to_device(dict(batch), teacher.device)
        rows = next(len(each) for each in batch.values() if isinstance(each, Tensor))
        # One pass forward of teacher and student, then one pass backward for each loss.
        tensors = inputs(rows)
        with torch.enable_grad():
            losses = batch_losses(teacher, student, batch, temperature)
        for index, loss in enumerate(losses):
            # Times the rows, a mean over rows has each row's own gradient at the row's own gates.
            loss, more = loss * rows if per_example else loss, index + 1 < len(losses)
            found = score(torch.autograd.grad(loss, tensors, retain_graph=more, materialize_grads=True))
            if num_batches:
                torch._foreach_add_(sums[index], found)
            else:
                sums.append(found)
        num_batches, num_examples = num_batches + 1, num_examples + rows
    if not num_batches:
        raise UsageError("Heads, neurons and weights are scored on examples, and the split has none.")
    return sums, {"temperature": temperature, "batches": num_batches, "examples": num_examples}


def scores_of_layers(sums: list[Tensor], counts: Sequence[Sequence[int]]) -> UnitScores:
    """Return scores of so many tensors in each layer, those of heads or attention first."""
    found, arrays, nothing = iter(sums), [], torch.zeros(0, dtype=sums[0].dtype)
    for name, kind in zip(("heads", "neurons"), counts, strict=True):
        rows = [torch.cat([nothing, *(next(found).flatten().cpu() for _ in range(count))]) for count in kind]
        wrong = [layer for layer, row in enumerate(rows) if not row.isfinite().all()]
        if wrong:
            raise UsageError(
                f"There are no finite scores for {name} of layer {wrong[0]}: check the weights of teacher and student."
            )
        arrays.append(pad_sequence(rows, batch_first=True, padding_value=torch.nan))
    return UnitScores(*arrays)


def distillation_losses(
    student_logits: Tensor, teacher_logits: Tensor, mask: Tensor | None = None, temperature: float = 2.0
) -> Tensor:
    """
    The distillation loss of each row, with a gradient through the teacher's logits and none through the student's:
    `τ² · CE(softmax(teacher / τ), student / τ) / 2`, summed over the positions that count; with a single class, of
    regression, half the squared difference. As in the authors' program; the paper (section 3.1) has neither τ² nor
    the half, which cancel when scores are normalised.

    Args:
        student_logits (`Tensor` of shape `(rows, classes)` or `(rows, positions, classes)`): The trial student's.
        teacher_logits (`Tensor`): The same shape. Classes that both forbid may hold the smallest number or `-inf`.
        mask (`Tensor` of shape `(rows, positions)`, *optional*): True where a position counts.
        temperature (`float`, *optional*, defaults to 2.0): τ.
    """
    dtype = torch.promote_types(teacher_logits.dtype, torch.float32)
    student, teacher = student_logits.detach().to(dtype), teacher_logits.to(dtype)
    if teacher.shape[-1] == 1:
        losses = (student - teacher).square().squeeze(-1) / 2
    else:
        probabilities = (teacher / temperature).softmax(-1)
        # 0 times the logarithm of 0 is no number.
        log_student = (student / temperature).log_softmax(-1).masked_fill(probabilities == 0, 0.0)
        losses = -(probabilities * log_student).sum(-1) * (temperature**2 / 2)
    if mask is not None:
        losses = losses.where(mask.bool(), 0.0)
    return losses.flatten(1).sum(1) if losses.dim() > 1 else losses


def batch_losses(
    teacher: nn.Module, student: nn.Module | None, batch: Mapping[str, Any], temperature: float
) -> list[Tensor]:
    """Compute means over the rows of a batch: the teacher's own loss and, with a student, the distillation loss."""
    outputs, labels = teacher(**batch), batch.get("labels")
    if outputs.get("loss") is None:
        raise UsageError("Expressiveness is measured by the teacher's loss, and the batch has no labels: give them.")
    kind = kind_of(teacher, outputs.get("logits"))
    losses = [outputs["loss"].mean()]
    if kind.has_decoder:
        # Its loss is a mean over labels; as of solvers, that of a row is the sum over its own.
        losses = [losses[0] * (labels != -100).sum() / len(labels)]
    if student is not None:
        with torch.no_grad():
            scores = student(**batch)
        parts = []
        for name in kind.prediction.outputs:
            pair = (scores.get(name), outputs.get(name))
            ours, theirs = (None if each is None else tuple(each.shape) for each in pair)
            if ours is None or ours != theirs or (kind.per_position and not kind.has_decoder):
                raise UsageError(
                    f"For the same batch the trial student's {name} have the shape {ours}, the teacher's {theirs}: "
                    "those of two classifiers, regressors, solvers of math word problems or sequence-to-sequence "
                    "models must be equal."
                )
            mask = kind.prediction.mask(name, pair[1], labels != -100 if kind.is_solver or kind.has_decoder else None)
            parts.append(
                distillation_losses(*(kind.prediction.classes(name, each) for each in pair), mask, temperature)
            )
        losses.append(sum(parts).mean())
    return losses
