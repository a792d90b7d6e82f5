"""Products of centred hidden states, and the losses computed from them in groups of texts."""

import torch
from torch import Tensor

from .precision import without_autocast
from .state_loss import COLLAPSED, StateLoss, masked


# Minimum number of valid tokens. With two, all centred states have the same direction, so any two models look alike.
MIN_ROWS = 3


class ProductLoss(StateLoss):
    """Base class of losses computed from products of the states `X` and `Y` of student and teacher, centred and
    divided by their Frobenius norms ([`unit_scale`]). A derived class implements `of_products`, which receives the
    squared Frobenius norms of `XᵀY`, `XᵀX` and `YᵀY`."""

    in_groups = True  # whether to compute these norms in groups of texts if there are as many tokens as features
    min_rows = MIN_ROWS  # minimum number of valid tokens

    def of_states(self, student_hidden: list[Tensor], teacher_hidden: list[Tensor], mask: Tensor) -> Tensor:
        """Return the loss from groups of texts, or from all rows at once if there are too few of them."""
        if not self.in_groups or mask.numel() < min(student_hidden[0].shape[-1], teacher_hidden[0].shape[-1]):
            return super().of_states(student_hidden, teacher_hidden, mask)
        with without_autocast(mask):
            number = mask.sum()
            check_rows(number, self.min_rows)
            cross, student, teacher, student_size, teacher_size = StreamedProducts.apply(
                student_hidden[0], teacher_hidden[0], mask, number
            )
            # The sizes are 1, or less for collapsed states. Their gradient is that of the division by the norm.
            student_size = student_size.clamp(min=1)
            teacher_size = teacher_size.clamp(min=1)
            cross = cross / (student_size * teacher_size)
            student = student / student_size.square()
            teacher = teacher / teacher_size.square()
            return of_rows(self.of_products(cross, student, teacher), number, self.min_rows)

    def compare(self, student_hidden: Tensor, teacher_hidden: Tensor, mask: Tensor) -> Tensor:
        """Return the loss from all rows at once."""
        number = mask.sum()
        check_rows(number, self.min_rows)
        student = unit_rows(*centred_rows(student_hidden, mask, number))
        teacher = unit_rows(*centred_rows(teacher_hidden, mask, number))
        cross = self.product(student, teacher, number)
        student_product = self.product(student, student, number)
        teacher_product = self.product(teacher, teacher, number)
        return of_rows(self.of_products(cross, student_product, teacher_product), number, self.min_rows)

    def product(self, first: Tensor, second: Tensor, number: Tensor) -> Tensor:
        """Return `||XᵀY||_F²` of centred rows, `number` of which are valid, from the smaller of two products."""
        if first.shape[0] < min(first.shape[1], second.shape[1]):
            return ((first @ first.T) * (second @ second.T)).sum()
        return (first.T @ second).square().sum()

    def of_products(self, cross: Tensor, student: Tensor, teacher: Tensor) -> Tensor:
        raise NotImplementedError


class StreamedProducts(torch.autograd.Function):
    """Squared norms of `XᵀY`, `XᵀX`, `YᵀY`, `X` and `Y` for centred states `X` and `Y`, each divided by the root of
    its [`unit_scale`], which counts as a constant. Forward and backward read the states in groups of texts, so that
    they are not copied and only the student's gradient has their size."""

    @staticmethod
    def forward(ctx, student, teacher, mask, number):
        # First pass: means over the valid tokens.
        student_mean = _mean(student, mask, number)
        teacher_mean = _mean(teacher, mask, number)
        student_width = len(student_mean)
        teacher_width = len(teacher_mean)
        # Second pass: products of the centred states. The symmetric ones are summed above their diagonal only.
        cross = student_mean.new_zeros(student_width, teacher_width)
        student_product = student_mean.new_zeros(student_width, student_width)
        teacher_product = student_mean.new_zeros(teacher_width, teacher_width)
        for texts in _groups(mask):
            x = _rows(student, mask, texts, student_mean)
            y = _rows(teacher, mask, texts, teacher_mean)
            cross.addmm_(x.T, y)
            _add_upper(student_product, x)
            _add_upper(teacher_product, y)
        student_product = student_product.triu() + student_product.triu(1).T
        teacher_product = teacher_product.triu() + teacher_product.triu(1).T
        # Centring subtracted the norm of the mean from each row.
        student_size = student_product.trace()
        teacher_size = teacher_product.trace()
        student_scale = unit_scale(student_size, student_size + number * student_mean.square().sum())
        teacher_scale = unit_scale(teacher_size, teacher_size + number * teacher_mean.square().sum())
        # Scaled before they are squared, which would overflow for large states.
        cross = cross / student_scale.sqrt() / teacher_scale.sqrt()
        student_product = student_product / student_scale
        teacher_product = teacher_product / teacher_scale
        saved = (student_mean, teacher_mean, student_scale, teacher_scale, cross, student_product)
        ctx.save_for_backward(student, teacher, mask, *saved)
        return (
            cross.square().sum(),
            student_product.square().sum(),
            teacher_product.square().sum(),
            student_size / student_scale,
            teacher_size / teacher_scale,
        )

    @staticmethod
    def backward(ctx, cross_gradient, student_gradient, _, size_gradient, __):
        student, teacher, mask, *saved = ctx.saved_tensors
        student_mean, teacher_mean, student_scale, teacher_scale, cross, student_product = saved
        # |XᵀY|² has the gradient 2 Y(XᵀY)ᵀ for X, |XᵀX|² has 4 X(XᵀX), and |X|² has 2 X.
        teacher_factor = 2 * cross_gradient * cross.T / student_scale.sqrt() / teacher_scale.sqrt()
        student_factor = 4 * student_gradient * student_product / student_scale
        student_factor.diagonal().add_(2 * size_gradient / student_scale)
        # Subtracting the products of the means takes less time than centring the states again.
        shift = -(student_mean @ student_factor + teacher_mean @ teacher_factor)
        gradient = torch.empty_like(student)
        for texts in _groups(mask):
            x = student[texts].flatten(0, 1).to(shift.dtype)
            y = teacher[texts].flatten(0, 1).to(shift.dtype)
            rows = torch.addmm(shift, y, teacher_factor).addmm_(x, student_factor).view_as(gradient[texts])
            gradient[texts] = rows.masked_fill_(~mask[texts].unsqueeze(-1), 0.0)
        return gradient, None, None, None


def _groups(mask: Tensor, rows: int = 512) -> list[slice]:
    """Return slices of texts that have about `rows` tokens each."""
    size = max(rows // max(mask.shape[1], 1), 1)
    return [slice(start, start + size) for start in range(0, len(mask), size)]


def _mean(states: Tensor, mask: Tensor, number: Tensor) -> Tensor:
    """Return the mean over the valid tokens, `number` in all."""
    total = 0
    for texts in _groups(mask):
        total = total + _rows(states, mask, texts).sum(0)
    return total / number.clamp(min=1)


def _add_upper(total: Tensor, rows: Tensor, block: int = 96) -> None:
    """Add `rowsᵀrows` to a symmetric sum, only in the blocks on and above its diagonal."""
    for start in range(0, len(total), block):
        total[start : start + block, start:].addmm_(rows[:, start : start + block].T, rows[:, start:])


def _rows(states: Tensor, mask: Tensor, texts: slice, mean: Tensor | None = None) -> Tensor:
    """Return the states of a group of texts minus their mean, in fp32 (fp64 stays fp64), with zeros at padding."""
    if mean is None:
        return masked(states[texts], mask[texts]).flatten(0, 1)
    return (states[texts] - mean).masked_fill_(~mask[texts].unsqueeze(-1), 0.0).flatten(0, 1)


def check_rows(number: Tensor, least: int, what: str = "batch") -> None:
    """Raise `ValueError` for too few valid tokens, where the device need not be waited for (see [`of_rows`])."""
    if number.device.type == "cpu" and 0 < number < least:
        raise ValueError(
            f"Comparing hidden states needs at least {least} valid tokens, but this {what} has {int(number)}. Use "
            "larger batches, and drop a short last training batch (`dataloader_drop_last=True`)."
        )


def of_rows(loss: Tensor, number: Tensor, least: int) -> Tensor:
    """Return the loss of `number` valid tokens, which is 0 without tokens. With too few, it is NaN with a zero
    gradient, so that accelerators, which [`check_rows`] does not wait for, do not train on it in silence."""
    too_few = torch.where(number > 0, torch.nan, 0.0).to(loss.dtype)
    return torch.where(number >= least, loss, too_few)


def centred_rows(states: Tensor, mask: Tensor, number: Tensor) -> tuple[Tensor, Tensor]:
    """Centre states `(batch, tokens, width)`, zero at padding, in place. Return them as rows, and their squared norm
    before centring, without a gradient."""
    rows = states.flatten(0, 1)
    total = torch.linalg.vector_norm(rows.detach()).square()
    mean = rows.sum(0, keepdim=True) / number.clamp(min=1)
    valid = mask.flatten().unsqueeze(-1)
    # In place, since copies of the states would take most of the memory.
    rows.addcmul_(valid.to(rows.dtype), mean, value=-1)
    return rows, total


def unit_rows(rows: Tensor, total: Tensor) -> Tensor:
    """Return centred rows divided by their norm; see [`unit_scale`]."""
    return rows / unit_scale(rows.square().sum(), total).sqrt()


def unit_scale(size: Tensor, total: Tensor) -> Tensor:
    """Return the squared norm that centred states of the squared norm `size` are divided by: `size`, or for collapsed
    states a constant share of `total`, their squared norm before centring. It is 1 if all states are zero."""
    smallest = COLLAPSED**2 * total.detach()
    scale = torch.where(size > smallest, size, smallest)
    return torch.where(scale == 0, 1.0, scale)


def safe_sqrt(value: Tensor) -> Tensor:
    """Return the square root, with a zero gradient at zero."""
    return value.clamp(min=torch.finfo(value.dtype).tiny).sqrt()
