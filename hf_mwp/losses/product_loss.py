"""Losses computed from products of centred hidden states, in groups of texts."""

from __future__ import annotations

import torch
from torch import Tensor

from .centred_rows import MIN_ROWS, centred_rows, count_rows, squared_product_norm
from .state_loss import StateLoss, without_autocast


class ProductLoss(StateLoss):
    """
    Base class of losses computed from products of the centred states `X` and `Y` of student and teacher. A derived
    class implements `of_products`, which receives the squared Frobenius norms of `XᵀY`, `XᵀX`, `YᵀY`, `X` and `Y`.

    Attributes:
        in_groups (`bool`): Whether to compute these norms in groups of texts if there are at least as many tokens as
            features.
        min_rows (`int`): Minimum number of valid tokens.
    """

    in_groups = True
    min_rows = MIN_ROWS

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
        """Return the squared norm of the product of centred rows. `number` is the number of valid rows."""
        return squared_product_norm(first, second)

    def of_products(self, cross: Tensor, ours: Tensor, theirs: Tensor, our_size: Tensor, their_size: Tensor) -> Tensor:
        raise NotImplementedError


class StreamedProducts(torch.autograd.Function):
    """
    Autograd function that returns the squared norms of `XᵀY`, `XᵀX`, `YᵀY`, `X` and `Y` for centred states `X` and
    `Y`. Forward and backward read the states in groups of texts, so that the states are not copied and only the
    student's gradient has their size.
    """

    @staticmethod
    def forward(ctx, student, teacher, mask, number):
        dtype = torch.promote_types(student.dtype, torch.float32)
        x, y = (_buffer(states, mask, dtype) for states in (student, teacher))
        pairs = (x, y), (x, x), (y, y)
        cross, ours, theirs = (first.new_zeros(first.shape[1], second.shape[1]) for first, second in pairs)
        counts, means = [], []
        for texts in _groups(mask):
            valid = mask[texts].flatten()
            rows = [_copy_rows(*each, texts) for each in ((x, student), (y, teacher))]
            counts.append(valid.sum())
            means.append([_clear_padding(each, valid).sum(0) / counts[-1].clamp(min=1) for each in rows])
            for each, mean in zip(rows, means[-1], strict=True):
                _clear_padding(each.sub_(mean), valid)
            _add_products(cross, ours, theirs, *rows)
        counts, means = torch.stack(counts).to(dtype), [torch.stack(each) for each in zip(*means, strict=True)]
        # Each group was centred by its own mean. Add the products of the differences between these means.
        centres = [counts @ each / number.clamp(min=1) for each in means]
        differences = [
            (each - centre) * counts.sqrt().unsqueeze(1) for each, centre in zip(means, centres, strict=True)
        ]
        _add_products(cross, ours, theirs, *differences)
        ours = ours.triu() + ours.triu(1).T
        ctx.save_for_backward(student, teacher, mask, *centres, cross, ours)
        theirs_squared = 2 * theirs.triu_().square().sum() - theirs.diagonal().square().sum()
        return cross.square().sum(), ours.square().sum(), theirs_squared, ours.trace(), theirs.trace()

    @staticmethod
    def backward(ctx, cross_gradient, ours_gradient, _, size_gradient, __):
        student, teacher, mask, student_mean, teacher_mean, cross, ours = ctx.saved_tensors
        of_teacher, of_student = 2 * cross_gradient * cross.T, 4 * ours_gradient * ours
        of_student.diagonal().add_(2 * size_gradient)
        gradient = torch.empty_like(student)
        x, y = (_buffer(states, mask, cross.dtype) for states in (student, teacher))
        part = torch.empty_like(x)
        for texts in _groups(mask):
            student_rows = _copy_rows(x, student, texts).sub_(student_mean)
            teacher_rows = _copy_rows(y, teacher, texts).sub_(teacher_mean)
            rows = torch.mm(teacher_rows, of_teacher, out=part[: len(student_rows)])
            rows.addmm_(student_rows, of_student)
            gradient[texts] = _clear_padding(rows, mask[texts].flatten()).view_as(gradient[texts])
        return gradient, None, None, None


def _groups(mask: Tensor, rows: int = 1024) -> list[slice]:
    """Return slices of texts that have about `rows` tokens each."""
    size = max(rows // max(mask.shape[1], 1), 1)
    return [slice(start, start + size) for start in range(0, len(mask), size)]


def _buffer(states: Tensor, mask: Tensor, dtype: torch.dtype) -> Tensor:
    """Allocate memory for the rows of one group, which all groups reuse."""
    return states.new_empty(mask[_groups(mask)[0]].numel(), states.shape[-1], dtype=dtype)


def _copy_rows(buffer: Tensor, states: Tensor, texts: slice) -> Tensor:
    rows = states[texts].flatten(0, 1)
    return buffer[: len(rows)].copy_(rows)


def _clear_padding(rows: Tensor, valid: Tensor) -> Tensor:
    """Set rows of padding to zero, in place."""
    if rows.device.type == "cpu":
        # Write only the rows of padding. On an accelerator the host would have to wait for their number.
        return rows.index_fill_(0, valid.logical_not().nonzero().squeeze(1), 0)
    return rows.masked_fill_(~valid.unsqueeze(1), 0)


def _add_products(cross: Tensor, ours: Tensor, theirs: Tensor, x: Tensor, y: Tensor, block: int = 128) -> None:
    """Add `xᵀy` to `cross`. Of the symmetric `xᵀx` and `yᵀy`, add only the blocks on and above the diagonal."""
    cross.addmm_(x.T, y)
    for total, rows in ((ours, x), (theirs, y)):
        for start in range(0, len(total), block):
            here = slice(start, start + block)
            total[here, start:].addmm_(rows[:, here].T, rows[:, start:])
