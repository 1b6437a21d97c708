"""Losses, forward and backward."""

from __future__ import annotations

from fairlead.ir._types import TensorType
from fairlead.ir.dims import Dim
from fairlead.ir.infer._rule import Number, Results, Rule, require
from fairlead.ir.infer._sizes import like, same, same_shape, with_shape

_NONE = 0


def nll_loss(
    self: TensorType, target: TensorType, weight: TensorType | None, reduction: int, ignore_index: Dim
) -> Results:
    """One number, or one for each target where nothing is reduced; and the sum of the weights."""
    require(self.rank in (1, 2), f"the input has {self.rank} dimensions")
    if self.rank == 2:
        same(self.shape[0], target.shape[0] if target.shape else 1, "the numbers of rows and targets")
    each = reduction == _NONE and self.rank == 2
    return with_shape(self, self.shape[:1] if each else ()), with_shape(self, ())


def nll_loss_2d(
    self: TensorType, target: TensorType, weight: TensorType | None, reduction: int, ignore_index: Dim
) -> Results:
    """One number, or one for each target where nothing is reduced; and the sum of the weights."""
    require(self.rank == 4 and target.rank == 3, f"there are {self.rank} and {target.rank} dimensions")
    same_shape((self.shape[0], *self.shape[2:]), target.shape, "the shapes of input and target")
    return with_shape(self, target.shape if reduction == _NONE else ()), with_shape(self, ())


def nll_loss_backward(
    grad_output: TensorType,
    self: TensorType,
    target: TensorType,
    weight: TensorType | None,
    reduction: int,
    ignore_index: Dim,
    total_weight: TensorType,
) -> Results:
    """A gradient for each element of the input."""
    return like(self)


def multi_margin(
    self: TensorType, target: TensorType, p: Number, margin: Number, weight: TensorType | None, reduction: int
) -> Results:
    """One number, or one for each target where nothing is reduced."""
    require(self.rank in (1, 2), f"the input has {self.rank} dimensions")
    return with_shape(self, target.shape if reduction == _NONE else ())


def multi_margin_backward(
    grad_output: TensorType,
    self: TensorType,
    target: TensorType,
    p: Number,
    margin: Number,
    weight: TensorType | None,
    reduction: int,
) -> Results:
    """A gradient for each element of the input."""
    return like(self)


def multilabel_margin(self: TensorType, target: TensorType, reduction: int) -> Results:
    """One number, or one for each row where nothing is reduced; and which classes are targets."""
    each = reduction == _NONE and self.rank == 2
    return with_shape(self, self.shape[:1] if each else ()), with_shape(self, target.shape)


def multilabel_margin_backward(
    grad_output: TensorType, self: TensorType, target: TensorType, reduction: int, is_target: TensorType
) -> Results:
    """A gradient for each element of the input."""
    return like(self)


def ctc(
    log_probs: TensorType,
    targets: TensorType,
    input_lengths: tuple[int, ...],
    target_lengths: tuple[int, ...],
    blank: int,
    zero_infinity: bool,
) -> Results:
    """A loss for each sequence, and the likelihood of each of its prefixes at each time."""
    require(log_probs.rank == 3, f"the input has {log_probs.rank} dimensions")
    time, batch, _ = log_probs.shape
    states = 2 * max(target_lengths, default=0) + 1
    return with_shape(log_probs, (batch,)), with_shape(log_probs, (batch, time, states))


def ctc_backward(
    grad: TensorType,
    log_probs: TensorType,
    targets: TensorType,
    input_lengths: tuple[int, ...],
    target_lengths: tuple[int, ...],
    neg_log_likelihood: TensorType,
    log_alpha: TensorType,
    blank: int,
    zero_infinity: bool,
) -> Results:
    """A gradient for each element of the input."""
    return like(log_probs)


RULES: dict[str, Rule] = {
    "aten.nll_loss_forward.default": nll_loss,
    "aten.nll_loss_backward.default": nll_loss_backward,
    "aten.multi_margin_loss.default": multi_margin,
    "aten.multi_margin_loss_backward.default": multi_margin_backward,
    "aten.multilabel_margin_loss_forward.default": multilabel_margin,
    "aten.multilabel_margin_loss_backward.default": multilabel_margin_backward,
    "aten._ctc_loss.default": ctc,
    "aten._ctc_loss_backward.default": ctc_backward,
    "aten.nll_loss2d_forward.default": nll_loss_2d,
    "aten.nll_loss2d_backward.default": nll_loss_backward,
}
