"""Products of centred hidden states, and the losses computed from them in groups of texts."""

import torch
from torch import Tensor

from ..precision import without_autocast
from ..state_loss import StateLoss, masked


# Minimum number of valid tokens. With two, all centred states have the same direction, so any two models look alike.
MIN_ROWS = 3


class ProductLoss(StateLoss):
    """Base class of losses computed from products of the centred states `X` and `Y` of student and teacher. A derived
    class implements `of_products`, which receives the squared Frobenius norms of `XᵀY`, `XᵀX`, `YᵀY`, `X` and `Y`."""

    in_groups = True  # whether to compute these norms in groups of texts if there are as many tokens as features
    min_rows = MIN_ROWS  # minimum number of valid tokens

    def of_states(self, ours: list[Tensor], theirs: list[Tensor], mask: Tensor) -> Tensor:
        """Return the loss from groups of texts, or from all rows at once if there are too few of them."""
        if not self.in_groups or mask.numel() < min(ours[0].shape[-1], theirs[0].shape[-1]):
            return super().of_states(ours, theirs, mask)
        with without_autocast(mask):
            number = count_rows(mask, self.min_rows)
            norms = StreamedProducts.apply(ours[0], theirs[0], mask, number)
            return torch.where(number > 0, self.of_products(*norms), 0.0)

    def compare(self, ours: Tensor, theirs: Tensor, mask: Tensor) -> Tensor:
        """Return the loss from all rows at once."""
        ours, theirs, number = centred_rows(ours, theirs, mask, self.min_rows)
        products = [self.product(*pair, number) for pair in ((ours, theirs), (ours, ours), (theirs, theirs))]
        sizes = [each.square().sum() for each in (ours, theirs)]
        return torch.where(number > 0, self.of_products(*products, *sizes), 0.0)

    def product(self, first: Tensor, second: Tensor, number: Tensor) -> Tensor:
        """Return `||XᵀY||_F²` of centred rows, `number` of which are valid, from the smaller of two products."""
        if first.shape[0] < min(first.shape[1], second.shape[1]):
            return ((first @ first.T) * (second @ second.T)).sum()
        return (first.T @ second).square().sum()

    def of_products(self, cross: Tensor, ours: Tensor, theirs: Tensor, our_size: Tensor, their_size: Tensor) -> Tensor:
        raise NotImplementedError


class StreamedProducts(torch.autograd.Function):
    """Squared norms of `XᵀY`, `XᵀX`, `YᵀY`, `X` and `Y` for centred states `X` and `Y`. Forward and backward read the
    states in groups of texts, so that they are not copied and only the student's gradient has their size."""

    @staticmethod
    def forward(ctx, student, teacher, mask, number):
        # First pass: means over the valid tokens.
        sums = [sum(_rows(states, mask, texts).sum(0) for texts in _groups(mask)) for states in (student, teacher)]
        means = [each / number.clamp(min=1) for each in sums]
        (m, n), new = (len(mean) for mean in means), means[0].new_zeros
        cross, ours, theirs = new(m, n), new(m, m), new(n, n)
        # Second pass: products of the centred states. The symmetric ones are summed above their diagonal only.
        for texts in _groups(mask):
            x, y = _rows(student, mask, texts, means[0]), _rows(teacher, mask, texts, means[1])
            cross.addmm_(x.T, y)
            _add_upper(ours, x)
            _add_upper(theirs, y)
        ours, theirs = (each.triu() + each.triu(1).T for each in (ours, theirs))
        ctx.save_for_backward(student, teacher, mask, *means, cross, ours)
        return *(each.square().sum() for each in (cross, ours, theirs)), ours.trace(), theirs.trace()

    @staticmethod
    def backward(ctx, cross_gradient, ours_gradient, _, size_gradient, __):
        student, teacher, mask, student_mean, teacher_mean, cross, ours = ctx.saved_tensors
        # |XᵀY|² has the gradient 2 Y(XᵀY)ᵀ for X, |XᵀX|² has 4 X(XᵀX), and |X|² has 2 X.
        of_teacher, of_student = 2 * cross_gradient * cross.T, 4 * ours_gradient * ours
        of_student.diagonal().add_(2 * size_gradient)
        # Subtracting the products of the means takes less time than centring the states again.
        shift = -(student_mean @ of_student + teacher_mean @ of_teacher)
        gradient = torch.empty_like(student)
        for texts in _groups(mask):
            x, y = (states[texts].flatten(0, 1).to(shift.dtype) for states in (student, teacher))
            rows = torch.addmm(shift, y, of_teacher).addmm_(x, of_student).view_as(gradient[texts])
            gradient[texts] = rows.masked_fill_(~mask[texts].unsqueeze(-1), 0.0)
        return gradient, None, None, None


def _groups(mask: Tensor, rows: int = 512) -> list[slice]:
    """Return slices of texts that have about `rows` tokens each."""
    size = max(rows // max(mask.shape[1], 1), 1)
    return [slice(start, start + size) for start in range(0, len(mask), size)]


def _add_upper(total: Tensor, rows: Tensor, block: int = 96) -> None:
    """Add `rowsᵀrows` to a symmetric sum, only in the blocks on and above its diagonal."""
    for start in range(0, len(total), block):
        total[start : start + block, start:].addmm_(rows[:, start : start + block].T, rows[:, start:])


def _rows(states: Tensor, mask: Tensor, texts: slice, mean: Tensor | None = None) -> Tensor:
    """Return the states of a group of texts minus their mean, in fp32 (fp64 stays fp64), with zeros at padding."""
    if mean is None:
        return masked(states[texts], mask[texts]).flatten(0, 1)
    return (states[texts] - mean).masked_fill_(~mask[texts].unsqueeze(-1), 0.0).flatten(0, 1)


def count_rows(mask: Tensor, least: int) -> Tensor:
    """Return the number of valid tokens. Raises `ValueError` for too few, where the device need not be waited for."""
    number = mask.sum()
    if number.device.type == "cpu" and 0 < number < least:
        raise ValueError(
            f"Comparing hidden states needs at least {least} valid tokens, but this batch has fewer. Use larger "
            "batches and drop a short last batch (`dataloader_drop_last=True`)."
        )
    return number


def centred_rows(ours: Tensor, theirs: Tensor, mask: Tensor, least: int = MIN_ROWS) -> tuple[Tensor, Tensor, Tensor]:
    """Centre states `(batch, tokens, width)`, zero at padding, in place. Return them as rows and their number."""
    number, valid = count_rows(mask, least), mask.flatten().unsqueeze(-1)
    rows = [states.flatten(0, 1) for states in (ours, theirs)]
    means = [each.sum(0, keepdim=True) / number.clamp(min=1) for each in rows]
    for each, mean in zip(rows, means, strict=True):
        # In place, since copies of the states would take most of the memory.
        each.addcmul_(valid.to(each.dtype), mean, value=-1)
    return *rows, number


def safe_sqrt(value: Tensor) -> Tensor:
    """Return the square root, with a zero gradient at zero."""
    return value.clamp(min=torch.finfo(value.dtype).tiny).sqrt()
