"""Losses, forward and backward."""

from __future__ import annotations

from fairlead.ir._model import TensorType
from fairlead.ir.dims import Dim
from fairlead.ir.infer._rule import Results, Rule, require
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


RULES: dict[str, Rule] = {
    "aten.nll_loss_forward.default": nll_loss,
    "aten.nll_loss_backward.default": nll_loss_backward,
    "aten.nll_loss2d_forward.default": nll_loss_2d,
    "aten.nll_loss2d_backward.default": nll_loss_backward,
}
