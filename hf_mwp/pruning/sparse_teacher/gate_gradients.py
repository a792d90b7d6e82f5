"""Scores of heads and neurons: what gates on them would do to the losses of teacher and student."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import torch
from accelerate.utils import send_to_device
from torch import Tensor, nn

from ...models.solver import Solver
from ...usage_error import UsageError
from ..gates import HeadGates, NeuronGates
from ..head_importance import as_array
from .knowledgeable_scores import KnowledgeableScores
from .unit_scores import UnitScores


def measure_scores(
    teacher: nn.Module,
    batches: Iterable[Mapping[str, Any]],
    student: nn.Module | None = None,
    *,
    task: bool = True,
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
            [`~models.architecture.find_encoder`] knows. Its loss is taken for a mean over rows.
        batches (`Iterable[Mapping]`): What both models are called with, in the order that counts; on any device.
        student (`nn.Module`, *optional*): The trial student; without one there is no `Q`.
        task (`bool`, *optional*, defaults to `True`): `False` leaves `P` out.
        per_example (`bool`, *optional*, defaults to `False`):
            Sums of absolute values over examples, the paper's expectation, from gates of shape `(batch, count)` and
            one pass backward a loss. By default, as in the authors' program, sums over batches of the absolute value
            of the batch's mean: they depend on size and order of the batches, and a short one weighs as much as any.
        temperature (`float`, *optional*, defaults to 2.0): τ of the distillation loss; regressors have none.

    Returns:
        [`KnowledgeableScores`], before normalisation.

    Raises:
        UsageError: nothing to measure, no batches, no labels, logits of different shape, or numbers that are not
            finite.
        ValueError: an encoder of an unknown type, or one with gates.
    """
    if not task and student is None:
        raise UsageError("Nothing is to be measured: student-friendliness needs a trial student.")
    sums: list[list[Tensor]] = []
    num_batches = num_examples = 0
    with left_unchanged(teacher, student), HeadGates(teacher) as heads, NeuronGates(teacher) as neurons:
        dtype = torch.promote_types(teacher.dtype, torch.float32)
        ones = [[None if each is None else each.to(dtype) for each in kind.values] for kind in (heads, neurons)]
        for batch in batches:
            batch = send_to_device(dict(batch), teacher.device)
            rows = next(len(each) for each in batch.values() if isinstance(each, Tensor))
            gates = [[_fresh(each, rows if per_example else None) for each in kind] for kind in ones]
            heads.values, neurons.values = gates
            present = [each for kind in gates for each in kind if each is not None]
            with torch.enable_grad():
                losses = batch_losses(teacher, student, batch, temperature, task)
            for index, loss in enumerate(losses):
                # Times the rows, a mean over rows has each row's own gradient at the row's own gates.
                gradients = torch.autograd.grad(
                    loss * rows if per_example else loss,
                    present,
                    retain_graph=index + 1 < len(losses),
                    materialize_grads=True,
                )
                found = [each.abs().double() for each in gradients]
                found = [each.sum(0) for each in found] if per_example else found
                if num_batches:
                    torch._foreach_add_(sums[index], found)
                else:
                    sums.append(found)
            num_batches, num_examples = num_batches + 1, num_examples + rows
        if not num_batches:
            raise UsageError("Heads and neurons are scored on examples, and the split has none.")
    found = [_as_scores(each, ones) for each in sums]
    return KnowledgeableScores(
        expressiveness=found[0] if task else None,
        friendliness=None if student is None else found[-1],
        about={
            "per_example": per_example,
            "temperature": temperature,
            "batches": num_batches,
            "examples": num_examples,
        },
    )


def distillation_losses(
    student_logits: Tensor, teacher_logits: Tensor, mask: Tensor | None = None, temperature: float = 2.0
) -> Tensor:
    """
    The distillation loss of each row, with a gradient through the teacher's logits and none through the student's:
    `τ² · CE(softmax(teacher / τ), student / τ) / 2`, summed over the positions that count; with a single class, of
    regression, half the squared difference. As in the authors' program; the paper (section 3.1) has neither τ² nor
    the half, which cancel when scores are normalised.

    Args:
        student_logits (`Tensor` of shape `(rows, classes)` or `(rows, positions, classes)`): Of the trial student.
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
    teacher: nn.Module,
    student: nn.Module | None,
    batch: Mapping[str, Any],
    temperature: float,
    task: bool = True,
) -> list[Tensor]:
    """Means over the rows of a batch: the teacher's own loss, the distillation loss."""
    outputs, losses = teacher(**batch), []
    if task:
        if outputs.get("loss") is None:
            raise UsageError(
                "Expressiveness is measured by the teacher's loss, and the batch has no labels: give them."
            )
        losses.append(outputs["loss"].mean())
    if student is not None:
        with torch.no_grad():
            logits = student(**batch).get("logits")
        ours, theirs = (None if each is None else tuple(each.shape) for each in (logits, outputs.get("logits")))
        if ours is None or ours != theirs:
            raise UsageError(
                f"For the same batch the trial student's logits have the shape {ours}, the teacher's {theirs}: "
                "they must classify the same into the same classes."
            )
        mask = None
        if isinstance(teacher, Solver):
            if batch.get("labels") is None:
                raise UsageError("A solver has logits where expressions have symbols: give batches with labels.")
            mask = batch["labels"] != -100
        elif len(ours) != 2:
            raise UsageError(
                f"Logits of the shape {ours} are not those of a classifier, regressor or solver of math word problems."
            )
        losses.append(distillation_losses(logits, outputs["logits"], mask, temperature).mean())
    return losses


def _fresh(ones: Tensor | None, rows: int | None) -> Tensor | None:
    """Gates of 1 that gradients are taken of: one for all rows, or one for each."""
    if ones is None:
        return None
    return (ones.clone() if rows is None else ones.expand(rows, -1).clone()).requires_grad_()


def _as_scores(sums: list[Tensor], ones: list[list[Tensor | None]]) -> UnitScores:
    found, arrays = iter(sums), []
    for name, kind in zip(("heads", "neurons"), ones, strict=True):
        rows = [torch.zeros(0) if each is None else next(found).cpu() for each in kind]
        for layer, row in enumerate(rows):
            if not row.isfinite().all():
                raise UsageError(
                    f"There are no finite scores for {name} of layer {layer}: the weights or outputs of the teacher "
                    "or of the trial student are not finite."
                )
        arrays.append(as_array(rows))
    return UnitScores(*arrays)


@contextmanager
def left_unchanged(*models: nn.Module | None) -> Iterator[None]:
    """While inside, models are in evaluation mode and their weights frozen, and random numbers are others."""
    models = [model for model in models if model is not None]
    modes = [(module, module.training) for model in models for module in model.modules()]
    frozen = [(parameter, parameter.requires_grad) for model in models for parameter in model.parameters()]
    devices = {model.device for model in models if model.device.type == "cuda"}
    with torch.random.fork_rng(devices):
        try:
            for model in models:
                model.eval().requires_grad_(False)
            yield
        finally:
            for module, training in modes:
                module.training = training
            for parameter, requires_grad in frozen:
                parameter.requires_grad_(requires_grad)


__all__ = ["batch_losses", "distillation_losses", "left_unchanged", "measure_scores"]
