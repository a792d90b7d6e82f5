"""Choice of the features of the hidden states that a narrower causal language model has."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor, nn
from transformers.pytorch_utils import Conv1D

from .projected_student import centred_projection


@dataclass
class LinearCopy:
    """Weight `(outputs, inputs)` and bias of a linear layer of the teacher, and the student's layer that gets them."""

    weight: Tensor
    bias: Tensor | None
    target: nn.Module

    @classmethod
    def of(
        cls, source: nn.Module, target: nn.Module, rows: Tensor | None = None, columns: Tensor | None = None
    ) -> "LinearCopy":
        """Return rows or columns of the weights of a `Linear` or `Conv1D` layer."""
        weight = source.weight
        bias = getattr(source, "bias", None)
        if isinstance(source, Conv1D):
            weight = weight.T
        if rows is not None:
            rows = rows.to(weight.device)
            weight = weight[rows]
            if bias is not None:
                bias = bias[rows]
        if columns is not None:
            weight = weight[:, columns.to(weight.device)]
        return cls(weight, bias, target)

    def store(self, weight: Tensor, bias: Tensor | None) -> None:
        """Write weight and bias to the student's layer."""
        if isinstance(self.target, Conv1D):
            weight = weight.T
        self.target.weight.copy_(weight)
        if bias is not None:
            self.target.bias.copy_(bias)


@dataclass
class NormCopy:
    """Weight and bias of a norm of the teacher, and the student's norm. The gain of a norm is `weight + offset`."""

    weight: Tensor
    bias: Tensor | None
    target: nn.Module
    offset: float

    @classmethod
    def of(cls, source: nn.Module, target: nn.Module, offset: float) -> "NormCopy":
        """Return the weights of a norm."""
        return cls(source.weight, getattr(source, "bias", None), target, offset)

    @property
    def gain(self) -> Tensor:
        """Gain of the norm, in single or double precision."""
        return self.weight.to(torch.promote_types(self.weight.dtype, torch.float32)) + self.offset

    def store(self, weight: Tensor, bias: Tensor | None) -> None:
        """Write weight and bias to the student's norm."""
        self.target.weight.copy_(weight)
        if bias is not None:
            self.target.bias.copy_(bias)

    def store_gain(self, gain: Tensor, bias: Tensor | None) -> None:
        """Write gain and bias to the student's norm."""
        self.store(gain - self.offset, bias)


class Features(Protocol):
    """Features of a student's hidden states, which decide its weights that read or write hidden states."""

    def embed(self, table: Tensor) -> Tensor:
        """Return the student's embeddings `(tokens, d)` for those of the teacher."""

    def read(self, norm: NormCopy, readers: Sequence[LinearCopy]) -> None:
        """Write a norm of the student, and the layers that read its output."""

    def write(self, writer: LinearCopy, norm: NormCopy | None) -> None:
        """Write a layer of the student whose output, after the norm, is added to the hidden states."""

    def read_by_embeddings(self, norm: NormCopy, table: Tensor) -> None:
        """Write the last norm of a student whose output is compared with the embeddings of tokens."""


@dataclass(frozen=True)
class LeadingFeatures:
    """The first `width` features of the teacher's hidden states, without a change."""

    width: int

    def embed(self, table: Tensor) -> Tensor:
        return table[:, : self.width]

    def read(self, norm: NormCopy, readers: Sequence[LinearCopy]) -> None:
        norm.store(norm.weight[: self.width], self._leading(norm.bias))
        for reader in readers:
            reader.store(reader.weight[:, : self.width], reader.bias)

    def write(self, writer: LinearCopy, norm: NormCopy | None) -> None:
        writer.store(writer.weight[: self.width], self._leading(writer.bias))
        if norm is not None:
            self.read(norm, ())

    def read_by_embeddings(self, norm: NormCopy, table: Tensor) -> None:
        self.read(norm, ())

    def _leading(self, bias: Tensor | None) -> Tensor | None:
        return None if bias is None else bias[: self.width]


class MainDirections:
    """
    Main directions of the teacher's hidden states. The student's hidden states are `x P` for hidden states `x` of the
    teacher and a projection `P` `(D, d)` with which norms commute: `norm(x P) = norm(x) P` as far as the directions
    contain `x`. Gains and biases of norms move into the linear layers after them, so the student's norms start
    without. If all hidden states lie in `d` directions (`d - 1` if norms subtract the mean), the student computes what
    the teacher does, except that a norm of what a layer writes, and a last norm with the mean subtracted before tied
    embeddings, need equal gains for this; otherwise they get the best or mean gain.

    Args:
        moment (`Tensor`): Second moment `(D, D)` of the hidden states, centred if norms subtract the mean.
        width (`int`): Number of features `d`.
        final_gain (`Tensor`): Gain `(D,)` of the last norm, before the head.
        centres (`bool`): Whether norms subtract the mean of the features.
        scales_embeddings (`bool`): Whether embeddings are multiplied by the square root of the width.
        dtype (`torch.dtype`): Type in which weights are computed.

    References: SliceGPT: Compress Large Language Models by Deleting Rows and Columns (ICLR 2024), section 3, for the
    invariance. Here, gains are no constraint, one basis serves all layers, and the model stays a stock one.
    """

    def __init__(
        self,
        moment: Tensor,
        width: int,
        final_gain: Tensor,
        centres: bool,
        scales_embeddings: bool,
        dtype: torch.dtype,
    ) -> None:
        size = len(moment)
        # Features are scaled so that the mean of their squares remains.
        if centres:
            projection = centred_projection(moment, width)
        else:
            projection = (width / size) ** 0.5 * _diagonalising(moment, width, final_gain)
        self.projection = projection.to(dtype)
        self.ratio = size / width
        # The inverse of the projection for hidden states that lie in the directions.
        self.lift = self.ratio * self.projection
        self.embedding_scale = 1.0
        if scales_embeddings:
            # The model scales by the square root of the width itself.
            self.embedding_scale = self.ratio**0.5
        # Norms that subtract the mean return states of the mean zero.
        self.states = torch.eye(width, dtype=dtype, device=moment.device)
        if centres:
            self.states -= 1 / width

    def embed(self, table: Tensor) -> Tensor:
        return self.embedding_scale * _product(table, self.projection)

    def read(self, norm: NormCopy, readers: Sequence[LinearCopy]) -> None:
        weights = [_product(reader.weight * norm.gain, self.lift) for reader in readers]
        biases = [reader.bias for reader in readers]
        norm_bias = None
        if norm.bias is not None:
            norm_bias = torch.zeros_like(self.projection[0])
            constants = [_product(reader.weight, norm.bias.to(self.lift.dtype)) for reader in readers]
            if None in biases:
                norm_bias = _solution(torch.cat(weights), torch.cat(constants))
            else:
                biases = [bias + constant for bias, constant in zip(biases, constants, strict=True)]
        norm.store_gain(torch.ones_like(self.projection[0]), norm_bias)
        for reader, weight, bias in zip(readers, weights, biases, strict=True):
            reader.store(weight, bias)

    def write(self, writer: LinearCopy, norm: NormCopy | None) -> None:
        if norm is None:
            bias = None
            if writer.bias is not None:
                bias = _product(writer.bias, self.projection)
            writer.store(_product(writer.weight.T, self.projection).T, bias)
            return
        # The norm sees less than the teacher's, because it sees only the student's directions.
        weight = _product((writer.weight * norm.gain[:, None]).T, self.projection).T
        share = self.ratio**0.5 * weight.norm() / writer.weight.to(weight.dtype).norm().clamp(min=1e-12)
        share = share.clamp(min=1e-6)
        writer.store(weight / share, None)
        norm.store_gain(share.expand(len(weight)), None)

    def read_by_embeddings(self, norm: NormCopy, table: Tensor) -> None:
        embeddings = self.embed(table)
        # The gain g with the smallest |embeddings diag(g) states - table diag(gain) lift|.
        target = _product(table * norm.gain, self.lift)
        products = (embeddings.T @ embeddings) * self.states
        gain = _inverse(products) @ ((embeddings.T @ target) * self.states).sum(1)
        bias = None
        if norm.bias is not None:
            bias = _solution(embeddings, _product(table, norm.bias.to(self.lift.dtype)))
        norm.store_gain(gain, bias)


def _diagonalising(moment: Tensor, width: int, gain: Tensor) -> Tensor:
    """Return the `width` main directions `(D, width)`, rotated so that a norm's gain is a gain of each of them."""
    directions = torch.linalg.eigh(moment).eigenvectors.flip(1)[:, :width]
    rotation = torch.linalg.eigh(directions.T @ (gain.to(moment.dtype)[:, None] * directions)).eigenvectors
    return directions @ rotation


def _product(weight: Tensor, matrix: Tensor) -> Tensor:
    """Return a product in the precision of `matrix`."""
    return weight.to(matrix.dtype) @ matrix


def _solution(matrix: Tensor, values: Tensor) -> Tensor:
    """Return the shortest `x` with the smallest `|matrix x - values|`."""
    return _inverse(matrix.T @ matrix) @ (matrix.T @ values)


def _inverse(matrix: Tensor) -> Tensor:
    """Return the pseudo-inverse of a symmetric matrix."""
    tolerance = len(matrix) * torch.finfo(matrix.dtype).eps
    return torch.linalg.pinv(matrix.double(), rtol=tolerance, hermitian=True).to(matrix.dtype)
